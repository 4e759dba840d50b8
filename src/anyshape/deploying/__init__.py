"""Write the files that TensorRT, Triton, OpenVINO or a browser need to run a model, from its contract. One file a target.

Files, in the order in which data flows:

    deploy_file      deploy(), and TARGETS
    deployment       the records: what a target gets, what it gives
    served_sizes     the sizes of a deployment
    profiles         TensorRT's profiles
    with_model       compare a deployment with its PyTorch model
    tensorrt_target  TensorRT
    triton_target    Triton
    openvino_target  OpenVINO
    web_target       a page in a browser
    ort_web          the files of onnxruntime-web
    assets_of        files that are copied as they are
    whole_folder     the folder, whole or not at all
    deploy_messages  findings
"""
