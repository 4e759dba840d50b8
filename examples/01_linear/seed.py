import torch
import anyshape.compat

class DynamicLinear(torch.nn.Module):
    def __init__(self, input_dim, output_dim):
        super(DynamicLinear, self).__init__()
        self.linear = torch.nn.Linear(input_dim, output_dim)

    def forward(self, x):
        return self.linear(x)

# Define symbolic input shape
input_shape = [None, 10]  # Batch size is dynamic

# Instantiate the model
model = DynamicLinear(10, 5)

# Generate dummy input with a specific batch size for export
dummy_input = torch.randn(3, 10) # Batch size = 3 for demonstration

# Export to ONNX
anyshape.compat.export(model, dummy_input, "dynamic_linear.onnx",
                  input_names=['input'], output_names=['output'],
                  dynamic_axes={'input': {0: 'batch_size'}, 'output': {0: 'batch_size'}})
