# Sorting, selecting and searching.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def orders(x):
    return (*x.sort(), *x.sort(0, descending=True), *x.sort(dim=1, stable=True), x.argsort(1), x.argsort(0, descending=True),
            *x.topk(3), *x.topk(2, dim=0, largest=False), *torch.topk(x, 2, sorted=True), x.msort(),
            torch.searchsorted(x.sort(1)[0], x), torch.isin(x, x[0]), *x.kthvalue(1))


class TopExperts(nn.Module):
    """Mixture of experts: route each row to its two best, weighted by the gate."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.experts = nn.Parameter(torch.randn(4, 6, 6) * 0.4)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        return torch.einsum("nke,nk->ne", torch.einsum("nd,nkde->nke", x, self.experts[chosen]), weights)


class TopP(nn.Module):
    """Nucleus filter on logits: everything beyond the mass 0.8 becomes -inf."""

    def forward(self, logits):
        values, order = logits.sort(descending=True)
        beyond = values.softmax(-1).cumsum(-1) > 0.8
        beyond[..., 1:] = beyond[..., :-1].clone()
        beyond[..., 0] = False
        return logits.masked_fill(beyond.scatter(1, order, beyond), float("-inf"))


CASES = [
    Case("orders", apply(orders), lambda: call(torch.randn(4, 5))),
    Case("orders_integers", apply(lambda x: (*x.sort(), x.unique(), *torch.unique(x, return_inverse=True, return_counts=True),
                                             *torch.unique_consecutive(x, return_counts=True))),
         lambda: call(torch.randint(0, 5, (12,)))),
    Case("topk_dynamic", apply(lambda x: tuple(x.topk(3, dim=1))), lambda n: call(torch.randn(2, n)),
         variants=((8,), (3,), (21,)), dynamic={"args": ({1: Dim("length", min=3, max=64)},)}),
    Case("mixture_of_experts", TopExperts, lambda: call(torch.randn(5, 6))),
    Case("nucleus_filter", TopP, lambda: call(torch.randn(3, 9) * 2)),
]
