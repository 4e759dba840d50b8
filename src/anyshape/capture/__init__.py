"""Stage: the module as programs of torch, one way to capture (a rung) after another."""
