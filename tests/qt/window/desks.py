"""What tests of workspaces do with the window: keep, drop, choose, and wait for it."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QDialog, QFileDialog

from engine.contract.workspace import Asked, Workspace, written
from engine.deployment.spec import Deployment
from engine.source.origin import Named

TINY = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000, "torch_dtype": "float16",
    "max_position_embeddings": 32768,
}  # fmt: skip
QWEN = Named("Qwen/Qwen3-8B")
FAR = Named("someone/nowhere-7B", "0e9e39f249a16976918f6564b8830bc894c89659")
PLAN = Deployment(runtime="sglang", max_model_len=12345, concurrency=7, page_size=64)


def keep(path, model, *compared, gpu="2 x RTX 4090", **further):
    """Write a workspace of these models to ``path``."""
    workspace = Workspace(
        Asked(model, PLAN, gpu), tuple(Asked(one, PLAN, gpu) for one in compared), **further
    )
    path.write_text(written(workspace))
    return workspace


def drop(app, path):
    """Drop a file on the window."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    app.window.dropEvent(
        QDropEvent(
            QPointF(400, 400), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
    )  # fmt: skip


def choose(app, path):
    """Answer the dialog that asks for a file."""
    dialog = next(d for d in app.window.findChildren(QFileDialog) if d.isVisible())
    dialog.fileSelected.emit(str(path))
    dialog.done(QDialog.DialogCode.Accepted)


def save_as(qtbot, app, path):
    """Save the desk to ``path``, and wait until that is its file."""
    app.window.commands["save as"].trigger()
    choose(app, path)
    settle(qtbot, app, path.name)


def settle(qtbot, app, document):
    """Wait until the title names ``document``."""
    name = f"{document}[*]"
    qtbot.waitUntil(lambda: app.window.windowTitle().startswith(name), timeout=20_000)


def wait_for_model(qtbot, app, name):
    """Wait until the model is on the desk and worked out."""

    def is_there():
        model = app.model.state.model
        return model is not None and model.id == name and app.model.is_settled

    qtbot.waitUntil(is_there, timeout=20_000)
