"""Compares embeddings of all sentences with PyTorch's: cosine, and agreement of nearest neighbours.

    python examples/sentences/compare_embeddings.py reference.npz embeddings.npz

Only sentences that optimizing has not seen ask for their neighbours; all sentences may be the answer.
"""

import sys

import numpy

HELD_OUT = slice(1, None, 2)  # as export_minilm.py deals the sentences
NEIGHBOURS = 5


def find_neighbours(vectors: numpy.ndarray) -> numpy.ndarray:
    """For each held-out sentence the rows of its nearest others, nearest first."""
    similarity = vectors @ vectors.T
    numpy.fill_diagonal(similarity, -numpy.inf)
    return numpy.argsort(-similarity[HELD_OUT], axis=1, kind="stable")[:, :NEIGHBOURS]


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: compare_embeddings.py REFERENCE.npz EMBEDDINGS.npz")
    with numpy.load(sys.argv[1]) as file:
        reference = file["natural"]
    with numpy.load(sys.argv[2]) as file:
        if len(file.files) != 1 or file[file.files[0]].shape != reference.shape:
            raise SystemExit(f"{sys.argv[2]}: one array of the sizes {reference.shape} is needed")
        vectors = file[file.files[0]]
    cosine = (reference * vectors).sum(1) / numpy.linalg.norm(reference, axis=1) / numpy.linalg.norm(vectors, axis=1)
    before, after = find_neighbours(reference), find_neighbours(vectors)
    nearest = float((before[:, 0] == after[:, 0]).mean())
    common = float(numpy.mean([len(set(a) & set(b)) / NEIGHBOURS for a, b in zip(before, after)]))
    print(f"{len(before)} held-out sentences: cosine {cosine[HELD_OUT].mean():.4f} on average, "
          f"{cosine[HELD_OUT].min():.4f} at worst; the same nearest neighbour for {nearest:.1%}, "
          f"{common:.1%} of the nearest {NEIGHBOURS} in common")


if __name__ == "__main__":
    main()
