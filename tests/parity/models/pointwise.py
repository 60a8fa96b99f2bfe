# Element-wise arithmetic, comparisons and special functions, with broadcasting.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def arithmetic(x, y):
    return (x + y, x - 2 * y, torch.sub(x, y, alpha=3), 1 - x, x * y, x / y, x // y, x % y, torch.remainder(x, -1.5),
            torch.fmod(x, y), -x, torch.div(x, y, rounding_mode="trunc"), torch.addcmul(x, x, y, value=0.5),
            torch.addcdiv(x, x, y, value=2.0), torch.lerp(x, y, 0.3), torch.rsub(x, y))


def powers(x):
    return (x**2, x**0.5, x**-1.5, 2**x, torch.pow(x, x), x.sqrt(), x.rsqrt(), x.square(), x.reciprocal(), x.exp(),
            x.exp2(), x.expm1(), x.log(), x.log2(), x.log10(), x.log1p(), torch.float_power(x, 3).float())


def trigonometry(x):
    return (x.sin(), x.cos(), x.tan(), x.asin(), x.acos(), x.atan(), x.sinh(), x.cosh(), x.tanh(), x.asinh(),
            (x + 1.5).acosh(), x.atanh(), torch.atan2(x, x + 0.5), torch.sinc(x), torch.hypot(x, x + 1),
            torch.deg2rad(x), torch.rad2deg(x))


def special(x):
    return (x.erf(), x.erfc(), (x * 0.9).erfinv(), x.lgamma(), x.digamma(), torch.special.i0(x), torch.special.i1e(x),
            torch.special.entr(x), torch.special.xlogy(x, x + 1), torch.special.ndtr(x), torch.logit(x * 0.5 + 0.2),
            torch.polygamma(1, x), torch.special.log_ndtr(x), torch.special.zeta(x + 2, x + 1),
            torch.special.bessel_j0(x), torch.special.airy_ai(x), torch.special.chebyshev_polynomial_t(x, 3),
            torch.igamma(x, x + 1), torch.mvlgamma(x + 3, 2), torch.special.erfcx(x), torch.special.spherical_bessel_j0(x))


def rounding(x):
    return (x.floor(), x.ceil(), x.round(), torch.round(x, decimals=2), x.trunc(), x.frac(), x.sign(), x.abs(), x.sgn(),
            x.clamp(-0.5, 0.5), x.clamp_min(0.1), torch.clamp(x, max=0.2), torch.clip(x, torch.tensor(-1.0), x.abs()),
            torch.nan_to_num(x / (x > 0), nan=1.0, posinf=2.0, neginf=-2.0), torch.copysign(x, -x), torch.heaviside(x, x),
            torch.nextafter(x, x + 1), torch.signbit(x))


def comparison(x, y):
    return (x > y, x >= 0, x < y, x <= y, x == y, x != 0, torch.isclose(x, y, rtol=0.5), torch.isnan(x / 0 * 0),
            torch.isinf(x / 0), torch.isfinite(x), torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y),
            (x > 0) & (y > 0), (x > 0) | ~(y > 0), (x > 0) ^ (y > 0), torch.logical_and(x, y),
            torch.logical_not(x), torch.logical_xor(x, y))


def broadcast(x, y, z):
    return x * y + z, torch.broadcast_tensors(x, z), x.expand_as(z), torch.stack(torch.broadcast_tensors(x, y, z)).sum(0)


class Scalars(nn.Module):
    """Python numbers of all kinds as arguments, and alpha and beta factors."""

    def forward(self, x, offset: float, times: int, flip: bool):
        y = torch.add(x, offset, alpha=2) * times
        return -y if flip else y


def pair(*shape):
    return call(torch.randn(*shape), torch.randn(*shape))


CASES = [
    Case("arithmetic", apply(arithmetic), lambda: pair(3, 5)),
    Case("arithmetic_broadcast", apply(arithmetic), lambda: call(torch.randn(4, 1, 3), torch.randn(5, 1) + 3)),
    Case("arithmetic_dynamic", apply(lambda x, y: arithmetic(x, y)), lambda n: pair(n, 4), variants=((3,), (1,), (17,)),
         dynamic={"args": ({0: Dim("rows", min=1, max=32)},) * 2}),
    Case("powers", apply(powers), lambda: call(torch.rand(3, 4) * 3 + 0.1)),
    Case("trigonometry", apply(trigonometry), lambda: call(torch.rand(3, 4) * 1.8 - 0.9)),
    Case("special_functions", apply(special), lambda: call(torch.rand(3, 4) * 0.8 + 0.1)),
    Case("rounding", apply(rounding), lambda: call(torch.randn(4, 5) * 2), f64_limit=1e-3),
    Case("comparison", apply(comparison), lambda: pair(3, 4)),
    Case("broadcast", apply(broadcast),
         lambda: call(torch.randn(4, 1), torch.randn(1, 5), torch.randn(3, 4, 5))),
    Case("scalar_arguments", Scalars, lambda: call(torch.randn(3), 1.5, 3, flip=True)),
    Case("non_finite_values", apply(lambda x: (x * 2, x.log(), x / 0, x.softmax(0), x.max(), x.sum(), x.relu(), x.exp())),
         lambda: call(torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42]))),
    Case("int_arithmetic", apply(lambda x, y: (x + y, x * y, x // y, x % y, torch.div(x, y, rounding_mode="trunc"), x / y,
                                               x.pow(2), -x, x.abs(), x.sum(), x.float().mean(), torch.fmod(x, y),
                                               torch.gcd(x, y), torch.lcm(x, y), x.clamp(-3, 4))),
         lambda: call(torch.randint(-20, 20, (4, 3)), torch.tensor([3, -4, 7]))),
    Case("bitwise", apply(lambda x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1, torch.bitwise_left_shift(x, y % 4),
                                        torch.bitwise_and(x, 7), torch.bitwise_not(y))),
         lambda: call(torch.randint(-100, 100, (8,)), torch.randint(0, 100, (8,)))),
    Case("foreach", apply(lambda x, y: torch._foreach_mul(torch._foreach_add([x, y], 1.0), [y, x])), lambda: pair(3)),
]
