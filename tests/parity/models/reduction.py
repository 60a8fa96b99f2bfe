# Reductions over one, several and all dimensions, and running (cumulative) ones.

import torch
from torch.export import Dim

from case import Case, apply, call


def sums(x):
    return (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1, keepdim=True), x.mean((1, 2)),
            x.nansum(0), x.nanmean(), x.prod(), x.prod(1), x.sum(dtype=torch.float64), x.count_nonzero(1),
            torch.trace(x[0]), x.sum_to_size(1, 3, 1))


def spreads(x):
    return (x.var(), x.var(1, unbiased=False), x.var((0, 2), correction=2, keepdim=True), x.std(), x.std(1),
            x.std(dim=(0, 1), correction=0), *torch.var_mean(x, 1), *torch.std_mean(x, (0, 2), keepdim=True))


def extremes(x):
    return (x.max(), x.min(), *x.max(1), *x.min(-1, keepdim=True), x.amax((0, 1)), x.amin(2), *torch.aminmax(x, dim=1),
            x.argmax(), x.argmax(1), x.argmin(-1, keepdim=True), x.median(), *x.median(1), *x.nanmedian(0),
            *x.mode(1), *x.kthvalue(2, dim=1))


def norms(x):
    return (x.norm(), x.norm(p=1, dim=1), x.norm(p=float("inf"), dim=(1, 2)), x.norm(2, -1, keepdim=True),
            torch.linalg.vector_norm(x, 3), torch.linalg.norm(x[0]), torch.linalg.matrix_norm(x, "fro"),
            torch.linalg.matrix_norm(x, 1), torch.dist(x[0], x[1]), torch.renorm(x, 2, 0, 1.0))


def cumulative(x):
    return (x.cumsum(0), x.cumsum(-1, dtype=torch.float64), x.cumprod(1), *x.cummax(1), *x.cummin(0),
            x.logcumsumexp(1), torch.diff(x, dim=1), torch.diff(x, n=2, prepend=x[..., :1]), torch.trapezoid(x, dx=0.5),
            torch.cumulative_trapezoid(x), torch.gradient(x, dim=1)[0])


def logical(x):
    return x.any(), x.all(), x.any(1), x.all(0, keepdim=True), (x > 0).sum(), (x > 0).any((0, 1)), (x != 0).all((0, 2))


def log_sums(x):
    return (x.logsumexp(1), x.logsumexp((0, 1), keepdim=True), x.softmax(1), x.log_softmax(0), x.softmax(-1, torch.float64),
            torch.logaddexp(x, x * 2), torch.logaddexp2(x, -x))


def losses(x, target, other):
    functional = torch.nn.functional
    return (functional.cross_entropy(x, target, label_smoothing=0.1), functional.nll_loss(x.log_softmax(1), target),
            functional.mse_loss(x, other), functional.l1_loss(x, other, reduction="none"),
            functional.smooth_l1_loss(x, other), functional.huber_loss(x, other, delta=0.5),
            functional.binary_cross_entropy_with_logits(x, other.sigmoid()),
            functional.kl_div(x.log_softmax(1), other.softmax(1), reduction="batchmean"),
            functional.cosine_similarity(x, other), functional.pairwise_distance(x, other),
            functional.binary_cross_entropy(x.sigmoid(), other.sigmoid()), functional.hinge_embedding_loss(x, other.sign()))


def block():
    return call(torch.randn(2, 3, 4))


CASES = [
    Case("sums", apply(sums), block),
    Case("sums_dynamic", apply(lambda x: (x.sum(1), x.mean(0), x.prod(-1), x.var(1, correction=0), x.logsumexp(0))),
         lambda b, n: call(torch.randn(b, n, 3)), variants=((3, 5), (1, 1), (8, 2)),
         dynamic={"args": ({0: Dim("batch", min=1, max=16), 1: Dim("length", min=1, max=16)},)}),
    Case("spreads", apply(spreads), block),
    Case("extremes", apply(extremes), block),
    Case("quantiles", apply(lambda x: (x.quantile(0.3), x.quantile(torch.tensor([0.1, 0.9]), dim=1), x.nanquantile(0.5, 0))),
         block, since=(2, 13)),
    Case("norms", apply(norms), block),
    Case("cumulative", apply(cumulative), block),
    Case("logical_reductions", apply(logical), lambda: call(torch.randint(-1, 2, (2, 3, 4)))),
    Case("log_sums", apply(log_sums), block),
    Case("losses", apply(losses), lambda: call(torch.randn(4, 5), torch.randint(0, 5, (4,)), torch.randn(4, 5))),
    Case("integer_reductions", apply(lambda x: (x.sum(), x.prod(1), *x.max(0), x.cumsum(1), x.argmax(), x.amin(1))),
         lambda: call(torch.randint(-9, 9, (3, 4), dtype=torch.int32))),
    Case("histograms", apply(lambda x: (torch.bincount(x, minlength=12), torch.histc(x.float(), 5, 0, 10),
                                        torch.bucketize(x.float(), torch.tensor([2.0, 5.0, 7.5])))),
         lambda: call(torch.randint(0, 10, (20,)))),
]
