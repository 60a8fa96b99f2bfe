# Fourier transforms and short-time transforms.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class Spectrogram(nn.Module):
    """Power spectrogram through a mel-like matrix, in decibels."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("filters", torch.rand(9, 5))

    def forward(self, x):
        spectrum = torch.stft(x, 16, hop_length=4, window=self.window, return_complex=True)
        power = spectrum.abs().pow(2).transpose(1, 2) @ self.filters
        return 10 * torch.log10(torch.clamp(power, min=1e-6))


class FourierMixing(nn.Module):
    """FNet's mixing of tokens, and a global filter in the frequency domain."""

    def __init__(self):
        super().__init__()
        self.filter = nn.Parameter(torch.randn(8, 5, 2))

    def forward(self, x):
        mixed = torch.fft.fft2(x).real
        frequencies = torch.fft.rfft(x, dim=-1, norm="ortho") * torch.view_as_complex(self.filter)
        return mixed, torch.fft.irfft(frequencies, n=8, dim=-1, norm="ortho")


def transforms(x):
    return (torch.fft.fft(x), torch.fft.ifft(x, norm="forward"), torch.fft.rfft(x, n=10), torch.fft.fftn(x, dim=(0, 1)),
            torch.fft.rfft2(x), torch.fft.irfft2(torch.fft.rfft2(x), s=x.shape[-2:]), torch.fft.fftshift(x),
            torch.fft.ifftshift(x), torch.fft.fftfreq(6, 0.5), torch.fft.rfftfreq(6), torch.fft.hfft(torch.fft.ihfft(x)))


def round_trip(x):
    window = torch.hann_window(16)
    spectrum = torch.stft(x, 16, 4, window=window, center=True, pad_mode="reflect", return_complex=True)
    return torch.istft(spectrum, 16, 4, window=window, length=x.shape[-1]), torch.view_as_real(spectrum)


CASES = [
    Case("fft_transforms", apply(transforms), lambda: call(torch.randn(3, 8))),
    Case("fft_mixing", FourierMixing, lambda: call(torch.randn(2, 8, 8))),
    Case("fft_dynamic", apply(lambda x: torch.fft.rfft(x, dim=1).abs()), lambda b, n: call(torch.randn(b, n)),
         variants=((3, 12), (1, 2), (2, 27)),
         dynamic={"args": ({0: Dim("batch", min=1, max=8), 1: Dim("length", min=2, max=64)},)}),
    Case("spectrogram", Spectrogram, lambda: call(torch.randn(2, 64))),
    Case("stft_round_trip", apply(round_trip), lambda: call(torch.randn(2, 64))),
]
