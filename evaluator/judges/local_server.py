"""A model on this machine: starts a server that speaks OpenAI's form on loopback, and ends it.

vLLM for a model's name or folder; for a ``.gguf`` file llama.cpp's ``llama-server``, or ``llama-cpp-python``'s.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from evaluator.errors import EvaluatorError
from evaluator.findings import plain

READY = 900.0  # seconds: a large model is loaded slowly
GRACE = 10.0
CONTEXT = 8192  # tokens


class LocalServer:
    """A server process. Use it with ``with``; it ends when the block does."""

    def __init__(self, model: str, *, ready: float = READY) -> None:
        """Raises :class:`EvaluatorError` if no server is installed that can run ``model``."""
        self.model, self.ready = model, ready
        self.port = _free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self._command = command(model, self.port)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalServer:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + self.ready
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise EvaluatorError(
                    f"the server for {plain(self.model, 80)} ended with code {self._process.returncode}",
                    self._last_words(),
                    f"run it by itself: {' '.join(self._command[:6])} ...",
                )
            try:
                with urllib.request.urlopen(f"{self.base_url}/models", timeout=2):  # noqa: S310 (our own address)
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        raise EvaluatorError(
            f"the server for {plain(self.model, 80)} was not ready after {self.ready:g} s", self._last_words()
        )

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = [
            line for line in self._log.read()[-4000:].decode("utf-8", "replace").splitlines() if line.strip()
        ]
        return plain(" | ".join(lines[-3:]), 300)

    def stop(self) -> None:
        """End the process that was started, and no other."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.close()


def command(model: str, port: int) -> list[str]:
    """How a server for ``model`` is started. Raises :class:`EvaluatorError` if none is installed."""
    where = ["--host", "127.0.0.1", "--port", str(port)]
    named = ["--served-model-name", served_name(model)]
    if model.endswith(".gguf"):
        if not Path(model).is_file():
            raise EvaluatorError(f"there is no file {plain(model, 120)}", usage=True)
        if found := shutil.which("llama-server"):
            return [found, "-m", model, "--ctx-size", str(CONTEXT), *where]
        if installed("llama_cpp") and installed("fastapi"):
            sizes = ["--n_ctx", str(CONTEXT), "--logits_all", "false"]
            return [sys.executable, "-m", "llama_cpp.server", "--model", model, *sizes, *where]
        raise _missing(
            "llama.cpp", 'install llama.cpp (llama-server), or: pip install "llama-cpp-python[server]"'
        )
    if found := shutil.which("vllm"):
        return [found, "serve", model, *named, *where]
    if installed("vllm"):
        return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, *named, *where]
    raise _missing("vLLM", "pip install vllm; or give -m a .gguf file and install llama.cpp's llama-server")


def served_name(model: str) -> str:
    """What the server calls ``model``: of a file or folder its name alone, so that replies are known wherever it lies."""
    return Path(model).name if Path(model).exists() else model


def lacking(model: str) -> EvaluatorError | None:
    """Why no server can be started for ``model``; None if one can."""
    try:
        command(model, 0)
    except EvaluatorError as error:
        return error
    return None


def _missing(name: str, fix: str) -> EvaluatorError:
    return EvaluatorError(
        "no server for models on this machine is installed",
        f"{name} was not found",
        f"{fix}; or start any OpenAI-compatible server yourself and name it: BASE_URL=http://127.0.0.1:8000/v1 with "
        "-p from_env; or judge offline: -p lexical",
        usage=True,
    )


def installed(module: str) -> bool:
    """Whether a module can be imported here."""
    return importlib.util.find_spec(module) is not None


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
