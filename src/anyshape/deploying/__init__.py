"""From a file's contract to what serves it: TensorRT, Triton, OpenVINO, a page in a browser. One file for each target."""
