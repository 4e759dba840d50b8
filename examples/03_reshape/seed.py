import torch
import anyshape.compat

class DynamicReshape(torch.nn.Module):
    def __init__(self):
        super(DynamicReshape, self).__init__()

    def forward(self, x):
        # Avoid hardcoding the shape; instead calculate it from input shape.
        batch_size = x.shape[0]
        feature_dim = x.shape[1]
        return x.view(batch_size, feature_dim) # No hardcoded values here

# Define symbolic input shape
input_shape = [None, 10]

# Instantiate the model
model = DynamicReshape()

# Generate dummy input with a specific shape for export
dummy_input = torch.randn(3, 10)

#Export to ONNX
anyshape.compat.export(model, dummy_input, "dynamic_reshape.onnx",
                  input_names=['input'], output_names=['output'],
                  dynamic_axes={'input': {0: 'batch_size'}, 'output': {0: 'batch_size'}})

