# Random numbers from the seeded default generator: dropout while training, and samples.

import torch
import torch.nn.functional as F
from torch import nn

from case import Case, apply, call


class NoisyLayer(nn.Module):
    """Dropout of several kinds in a row, and additive noise."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.drop, self.alpha = nn.Dropout(0.5), nn.AlphaDropout(0.2)

    def forward(self, x):
        x = self.alpha(self.drop(self.linear(x)))
        return x + 0.1 * torch.randn_like(x)


class StochasticDepth(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        keep = torch.rand(x.shape[0], 1) < 0.7
        return x + self.linear(x) * keep / 0.7


def samples(x):
    return (torch.rand(3), torch.randn(2, 2), torch.randint(0, 10, (4,)), torch.rand_like(x), torch.bernoulli(x.sigmoid()),
            torch.randperm(6), torch.normal(0.0, 1.0, (3,)), torch.empty(3).uniform_(-1, 1), torch.empty(3).exponential_(),
            torch.multinomial(x.softmax(-1), 2), torch.randint_like(x, 5))


CASES = [
    Case("dropout_train", lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.1)),
         lambda: call(torch.randn(4, 8)), mode="train"),
    Case("dropout_channels_train", lambda: nn.Sequential(nn.Dropout2d(0.3), nn.Dropout3d(0.0)),
         lambda: call(torch.randn(2, 5, 3, 4)), mode="train"),
    Case("dropout_eval", lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.4), nn.FeatureAlphaDropout(0.2)),
         lambda: call(torch.randn(4, 8))),
    Case("noise_train", NoisyLayer, lambda: call(torch.randn(4, 8)), mode="train"),
    Case("stochastic_depth", StochasticDepth, lambda: call(torch.randn(4, 8)), mode="train"),
    Case("samples", apply(samples), lambda: call(torch.randn(3, 4))),
    Case("variational_sample", apply(lambda mean, log_scale: mean + torch.randn_like(mean) * torch.exp(0.5 * log_scale)),
         lambda: call(torch.randn(2, 3), torch.randn(2, 3))),
]
