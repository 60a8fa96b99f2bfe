# Recurrent layers: LSTM, GRU and plain RNN in their spellings, and cells in a Python loop.

import torch
from torch import nn
from torch.export import Dim

from case import Case, call


class CellLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(5, 7)
        self.gru = nn.GRUCell(7, 6)
        self.rnn = nn.RNNCell(6, 4, nonlinearity="relu")

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 7)
        c = torch.zeros_like(h)
        g = x.new_zeros(x.shape[0], 6)
        r = x.new_zeros(x.shape[0], 4)
        steps = []
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
            r = self.rnn(g, r)
            steps.append(r)
        return torch.stack(steps, dim=1), (h, c)


class LastState(nn.Module):
    """Classifier on the last hidden states of both directions."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        _, hidden = self.gru(x)
        return self.head(torch.cat([hidden[-2], hidden[-1]], dim=-1))


class LastLstmState(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 8, num_layers=2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        _, (hidden, cell) = self.lstm(x)
        return torch.relu(self.head(hidden[-1])) * cell.mean()


def sequence(time=6, batch=3, size=5):
    return call(torch.randn(time, batch, size))


CASES = [
    Case("lstm", lambda: nn.LSTM(5, 8), sequence),
    Case("lstm_two_layers", lambda: nn.LSTM(5, 8, num_layers=2), sequence, forms=("core",), since=(2, 13)),
    Case("lstm_batch_first_bidirectional", lambda: nn.LSTM(5, 8, num_layers=2, batch_first=True, bidirectional=True),
         sequence),
    Case("lstm_projected", lambda: nn.LSTM(5, 8, proj_size=3), sequence),
    Case("lstm_with_state", lambda: nn.LSTM(5, 8, bias=False),
         lambda: call(torch.randn(4, 3, 5), (torch.randn(1, 3, 8), torch.randn(1, 3, 8)))),
    Case("lstm_unbatched", lambda: nn.LSTM(5, 8), lambda: call(torch.randn(6, 5))),
    Case("lstm_dynamic_batch", lambda: nn.LSTM(5, 8, batch_first=True), lambda b: sequence(b, 6, 5),
         variants=((3,), (1,), (9,)), dynamic={"input": {0: Dim("batch", min=1, max=16)}}),
    Case("lstm_last_state", LastLstmState, lambda b: sequence(b, 6, 5), variants=((3,), (1,), (9,)),
         dynamic={"x": {0: Dim("batch", min=1, max=16)}}),
    Case("gru", lambda: nn.GRU(5, 8), sequence, forms=("core",)),
    Case("gru_last_state", LastState, lambda: sequence(3, 7, 6)),
    Case("gru_dropout_train", lambda: nn.GRU(5, 8, num_layers=2, dropout=0.4), sequence, mode="train"),
    Case("rnn_tanh", lambda: nn.RNN(5, 8, num_layers=2), sequence),
    Case("rnn_relu_bidirectional", lambda: nn.RNN(5, 8, nonlinearity="relu", bidirectional=True), sequence),
    Case("recurrent_cells", CellLoop, lambda: sequence(2, 4, 5)),
]
