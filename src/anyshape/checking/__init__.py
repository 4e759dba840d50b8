"""Files that exist already: compared with their module, signed again, measured."""
