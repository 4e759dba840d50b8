"""Write the files that TensorRT, Triton, OpenVINO or a browser need to run a model, from its contract. One file a target.

Files, in the order in which data flows:

    deploy_file      deploy(), TARGETS, and the comparison with a PyTorch model
    deployment       the records of a deployment, and its folder, whole or not at all
    served_sizes     the sizes of a deployment
    profiles         TensorRT's profiles
    tensorrt_target  TensorRT
    triton_target    Triton
    openvino_target  OpenVINO
    web_target       a page in a browser, with the files of onnxruntime-web
    deploy_messages  findings
"""
