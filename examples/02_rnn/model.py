"""A recurrent network with dynamic batch and length.    anyshape export examples/02_rnn/model.py -o rnn.onnx"""

import torch


class DynamicRNN(torch.nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.rnn = torch.nn.RNN(input_size, hidden_size, batch_first=True)
        self.linear = torch.nn.Linear(hidden_size, output_size)

    def forward(self, input):
        output, _ = self.rnn(input)
        return self.linear(output[:, -1, :])  # the last hidden state


def model():
    torch.manual_seed(0)
    return DynamicRNN(10, 20, 5)


def inputs(batch_size=3, sequence_length=5):
    return torch.randn(batch_size, sequence_length, 10)
