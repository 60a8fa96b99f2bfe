# Products of matrices in every spelling, and decompositions with a unique answer.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def products(a, b, v):
    return (a @ b, torch.mm(a[0], b[0]), torch.bmm(a, b), torch.matmul(a, v), torch.mv(a[0], v), v.dot(v), torch.outer(v, v),
            torch.addmm(b[0][:3, :2], a[0], b[0][:, :2], beta=0.5, alpha=2), torch.baddbmm(a @ b, a, b, beta=0),
            torch.addmv(v[:3], a[0], v), a[0] @ b[0] @ b[0].t(),
            torch.tensordot(a, b, dims=([2], [1])), torch.kron(a[0], b[0][:2]), torch.inner(a[0], v), torch.vdot(v, v),
            torch.addbmm(a[0] @ b[0], a, b), torch.addr(torch.outer(v, v), v, v, alpha=0.1))


def broadcast_products(x, y):
    return (torch.matmul(x, y), x[0] @ y, x @ y[0, 0], x[0, 0] @ y[..., 0].unsqueeze(-1), torch.matmul(x, y[0, 0, :, 0]),
            F.linear(x, y[0, 0].t()))


def contractions(x, y):
    return (torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij,bjk->", x, y), torch.einsum("bij->bji", x),
            torch.einsum("bii->bi", x[:, :, :3]), torch.einsum("b...j,b...->bj", x, x[..., 0]),
            torch.einsum("bij,bkj->bik", x, x), torch.einsum("i,j->ij", x[0, 0], y[0, 0]),
            torch.einsum("bij,bjk,bkl->bil", x, y, y.mT))


def solvers(a, b):
    spd = a @ a.mT + 3 * torch.eye(4)
    factor = torch.linalg.cholesky(spd)
    return (torch.linalg.inv(spd), torch.linalg.solve(spd, b), torch.linalg.det(spd), *torch.linalg.slogdet(spd),
            torch.logdet(spd), factor, torch.cholesky_solve(b, factor),
            torch.linalg.solve_triangular(factor, b, upper=False), torch.cholesky_inverse(factor),
            torch.linalg.matrix_power(spd * 0.1, 3), torch.linalg.eigvalsh(spd), torch.linalg.pinv(spd, hermitian=True),
            torch.matrix_exp(spd * 0.05), torch.linalg.svdvals(spd),
            torch.linalg.multi_dot([spd[0], b[0], b[0].mT]), torch.linalg.vander(b[0, :, 0]),
            torch.linalg.cross(b[:, :3, 0], b[:, 1:, 0]), torch.linalg.matrix_rank(spd))


def decompositions(a):
    """Factors whose signs are free are multiplied together again."""
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    q, r = torch.linalg.qr(a)
    values, vectors = torch.linalg.eigh(a.mT @ a)
    factor, pivots = torch.linalg.lu_factor(a[:3] @ a[:3].mT + 3 * torch.eye(3))
    return ((u * s) @ vh, s, q @ r, r.abs(), (vectors * values) @ vectors.mT, values,
            torch.linalg.lu_solve(factor, pivots, a[:3]), torch.linalg.cond(a[:3, :3] + 3 * torch.eye(3)),
            torch.sparse.mm(a.to_sparse(), a.t()))


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(4, 5, 3)
        self.low_rank = nn.Linear(3, 6, bias=False)

    def forward(self, x, y):
        return self.low_rank(self.bilinear(x, y))


CASES = [
    Case("products", apply(products), lambda: call(torch.randn(2, 3, 4), torch.randn(2, 4, 3), torch.randn(4))),
    Case("products_broadcast", apply(broadcast_products), lambda: call(torch.randn(2, 3, 5, 4), torch.randn(1, 3, 4, 6))),
    Case("einsum", apply(contractions), lambda: call(torch.randn(2, 3, 4), torch.randn(2, 4, 5))),
    Case("einsum_dynamic", apply(lambda x, y: torch.einsum("bnd,bmd->bnm", x, y)),
         lambda b, n, m: call(torch.randn(b, n, 4), torch.randn(b, m, 4)), variants=((2, 3, 5), (1, 1, 1), (3, 9, 4)),
         dynamic={"args": ({0: Dim("batch", min=1, max=8), 1: Dim("rows", min=1, max=32)},
                           {0: Dim("batch", min=1, max=8), 1: Dim("columns", min=1, max=32)})}),
    Case("solvers", apply(solvers), lambda: call(torch.randn(2, 4, 4), torch.randn(2, 4, 3)), f64_limit=1e-3),
    Case("decompositions", apply(decompositions), lambda: call(torch.randn(5, 3)), f64_limit=1e-3),
    Case("bilinear", Bilinear, lambda: call(torch.randn(6, 4), torch.randn(6, 5))),
    Case("distances", apply(lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1.0), F.pdist(x))),
         lambda: call(torch.randn(5, 3), torch.randn(4, 3))),
]
