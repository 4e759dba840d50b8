import torch
import anyshape.compat

class DynamicRNN(torch.nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super(DynamicRNN, self).__init__()
        self.rnn = torch.nn.RNN(input_size, hidden_size, batch_first=True)
        self.linear = torch.nn.Linear(hidden_size, output_size)

    def forward(self, x):
        output, _ = self.rnn(x)
        output = self.linear(output[:, -1, :]) #Take the last hidden state
        return output

#Define symbolic input shape
input_shape = [None, None, 10] #Batch and Sequence length are dynamic

# Instantiate the model
model = DynamicRNN(10, 20, 5)

# Generate dummy input with a specific shape for export
dummy_input = torch.randn(3, 5, 10) #Batch size=3, seq len=5

# Export to ONNX
anyshape.compat.export(model, dummy_input, "dynamic_rnn.onnx",
                  input_names=['input'], output_names=['output'],
                  dynamic_axes={'input': {0: 'batch_size', 1: 'sequence_length'},
                                'output': {0: 'batch_size'}})
