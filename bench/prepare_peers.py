"""Makes the models of ONNX Runtime and OpenVINO out of model.onnx, as their documentation advises.

    prepare_peers.py FOLDER THREADS [ENGINE...]

Makes all or the engines that are named. FOLDER gets the models and peers.json, which names for each engine its file, how it was made and what was tried. Where
the documentation leaves a choice (static or dynamic int8, fused transformer or not, what runs between int8 layers) all
are made, and the fastest is kept that is near enough to f32: the rule that lissome's own int8 models are chosen by. Near
enough to be counted beside ours comes first.
An engine that cannot be made has a `reason` instead of a file.
"""

import json
import logging
import pathlib
import statistics
import sys
import time
import warnings

import numpy

import peer_worker
from figures import MOST_PEER_ERROR

MOST_ERROR = 0.1  # relative; as cosine 0.005
TIMED_SECONDS = 1.0
FUSION_KINDS = ("bert", "vit", "gpt2")  # of ONNX Runtime's transformer optimizer

Choice = dict[str, object]


class Maker:
    def __init__(self, folder: pathlib.Path, threads: int):
        self.folder, self.threads = folder, threads
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        self.attention, self.recurrent = facts["attention"], facts["recurrent"]
        self.rows = peer_worker.cut_rows(folder / "calibration.npz", folder)
        half = len(self.rows) // 2
        self.calibration, self.judging = self.rows[:half], self.rows[half:][:32]
        # The error up to which an int8 row of a peer counts.
        own = folder / "prepared.json"
        own_error = json.loads(own.read_text(encoding="utf-8")).get("int8", {}).get("error") if own.exists() else None
        self.countable = MOST_ERROR if own_error is None else min(MOST_PEER_ERROR * own_error, MOST_ERROR)
        made = folder / "peers.json"
        self.choices: dict[str, Choice] = json.loads(made.read_text(encoding="utf-8")) if made.exists() else {}
        self.reference: list[numpy.ndarray] = []

    def judge(self, engine: str, choice: Choice) -> Choice:
        """Adds time and error to a choice, by running it."""
        self.choices[engine] = choice
        self.save()
        loaded = peer_worker.load_engine(engine, self.folder, self.threads)
        outputs = [loaded.read(loaded.bind(row)()) for row in self.judging]
        if not self.reference:
            self.reference = outputs
        difference = numpy.concatenate([a - b for a, b in zip(outputs, self.reference)])
        choice["error"] = float(numpy.linalg.norm(difference) / numpy.linalg.norm(numpy.concatenate(self.reference)))
        call, times = loaded.bind(self.judging[0]), []
        end = time.perf_counter() + TIMED_SECONDS
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        choice["milliseconds"] = statistics.median(times) * 1e3
        return choice

    def choose(self, engine: str, makers: list) -> None:
        tried, reasons = [], []
        for make in makers:
            try:
                tried += [self.judge(engine, choice) for choice in make()]
            except Exception as error:  # of whatever kind the engine's tools throw: kept as the reason
                reasons.append(f"{make.__name__}: {str(error).strip().splitlines()[0] if str(error) else type(error).__name__}"[:200])
        if tried:
            best = self.find_best(tried)
            self.choices[engine] = {**best, "tried": [dict(choice) for choice in tried], "failed": reasons}
        else:
            self.choices[engine] = {"reason": "; ".join(reasons)}
        self.save()

    def find_best(self, tried: list[Choice]) -> Choice:
        for bound in (self.countable, MOST_ERROR):
            if near := [choice for choice in tried if choice["error"] <= bound]:
                return min(near, key=lambda choice: choice["milliseconds"])
        return min(tried, key=lambda choice: choice["error"])

    def save(self) -> None:
        (self.folder / "peers.json").write_text(json.dumps(self.choices, indent=1) + "\n", encoding="utf-8")

    # ---- ONNX Runtime

    def make_ort_plain(self) -> list[Choice]:
        return [{"file": "model.onnx", "how": "as exported"}]

    def make_ort_fused(self) -> list[Choice]:
        if not self.attention:
            return []
        from onnxruntime.transformers import optimizer

        source, fused = str(self.folder / "model.onnx"), []
        for kind in FUSION_KINDS:
            model = optimizer.optimize_model(source, kind, *self.attention, opt_level=0)
            counts = {name: count for name, count in model.get_fused_operator_statistics().items() if count}
            fused.append((sum(counts.values()), kind, counts, model))
        _, kind, counts, model = max(fused, key=lambda entry: entry[0])
        model.save_model_to_file(str(self.folder / "ort_fused.onnx"))
        return [{"file": "ort_fused.onnx", "how": f"fused by its transformer optimizer for {kind}: {counts}"}]

    def quantizable(self) -> pathlib.Path:
        from onnxruntime.quantization.shape_inference import quant_pre_process

        path = self.folder / "ort_shapes.onnx"
        quant_pre_process(str(self.folder / "model.onnx"), str(path), skip_symbolic_shape=True)
        return path

    def make_ort_static(self) -> list[Choice]:
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        class Reader(CalibrationDataReader):
            def __init__(self, rows: list):
                self.left = iter(rows)

            def get_next(self):
                return next(self.left, None)

        # Transformers lose most of their accuracy, and no time, between the products.
        types = ["MatMul", "Gemm", "Conv"] if self.attention else None
        quantize_static(
            str(self.quantizable()), str(self.folder / "ort_static.onnx"), Reader(self.calibration),
            quant_format=QuantFormat.QDQ, op_types_to_quantize=types, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )
        return [{"file": "ort_static.onnx", "how": "static, QDQ, a scale per channel"}]

    def make_ort_dynamic_fused(self) -> list[Choice]:
        return self.quantize_ort_dynamic("ort_fused.onnx") if (self.folder / "ort_fused.onnx").exists() else []

    def make_ort_dynamic_plain(self) -> list[Choice]:
        return self.quantize_ort_dynamic("model.onnx") if self.attention or self.recurrent else []

    def quantize_ort_dynamic(self, source: str) -> list[Choice]:
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        model = onnx.load(str(self.folder / source))
        # The shapes that were noted on export contradict the weights that quantizing turns around.
        del model.graph.value_info[:]
        target = self.folder / f"ort_dynamic_of_{source}"
        quantize_dynamic(
            model, str(target), per_channel=True, weight_type=QuantType.QInt8,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return [{"file": target.name, "how": f"dynamic, a scale per channel, of {source}"}]

    # ---- OpenVINO

    def make_openvino(self, hint: str) -> list[Choice]:
        import openvino

        path = self.folder / "openvino.xml"
        if not path.exists():
            openvino.save_model(openvino.convert_model(str(self.folder / "model.onnx")), path, compress_to_fp16=False)
        return [{"file": path.name, "hint": hint, "how": f"precision hint {hint}"}]

    def make_ov_f32(self) -> list[Choice]:
        return self.make_openvino("f32")

    def make_ov_bf16(self) -> list[Choice]:
        if not can_use_bf16():
            raise RuntimeError("this processor has no bf16")
        return self.make_openvino("bf16")

    def make_ov_int8(self) -> list[Choice]:
        import nncf
        import openvino

        nncf.set_log_level(logging.ERROR)
        kinds = {"symmetric": {"preset": nncf.QuantizationPreset.PERFORMANCE}, "mixed": {"preset": nncf.QuantizationPreset.MIXED}}
        if self.attention:
            kinds = {"transformer": {"model_type": nncf.ModelType.TRANSFORMER}}
        hints = ["f32", "bf16"] if can_use_bf16() else ["f32"]
        choices = []
        for kind, options in kinds.items():
            model = openvino.Core().read_model(str(self.folder / "openvino.xml"))
            quantized = nncf.quantize(model, nncf.Dataset(self.calibration), subset_size=len(self.calibration), **options)
            path = self.folder / f"openvino_int8_{kind}.xml"
            openvino.save_model(quantized, path, compress_to_fp16=False)
            choices += [{"file": path.name, "hint": hint, "how": f"NNCF, {kind}, the rest {hint}"} for hint in hints]
        return choices


def can_use_bf16() -> bool:
    import openvino

    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    folder, threads = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    maker = Maker(folder, threads)
    makers = {
        "ort_f32": [maker.make_ort_plain, maker.make_ort_fused],
        "ort_int8": [maker.make_ort_static, maker.make_ort_dynamic_fused, maker.make_ort_dynamic_plain],
        "ov_f32": [maker.make_ov_f32],
        "ov_bf16": [maker.make_ov_bf16],
        "ov_int8": [maker.make_ov_int8],
    }
    for engine in sys.argv[3:] or makers:
        maker.choose(engine, makers[engine])

if __name__ == "__main__":
    main()
