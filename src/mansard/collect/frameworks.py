"""Callbacks for training frameworks: each makes one batch one step of a profile.

The frameworks are imported when their callback is made, so none of them is a dependency.
"""

from typing import Any

from mansard.collect.session import Profile


def lightning_callback(taken: Profile) -> Any:
    """A callback for ``lightning.Trainer(callbacks=[...])``.

    Args:
        taken: an entered ``mansard.profile``.
    """
    try:
        from lightning.pytorch.callbacks import Callback  # noqa: PLC0415
    except ImportError:
        from pytorch_lightning.callbacks import Callback  # noqa: PLC0415

    class MansardCallback(Callback):  # type: ignore[misc]
        """One training batch is one step."""

        def on_train_batch_start(self, *_: object, **__: object) -> None:
            """Begin the step."""
            taken.begin_step()

        def on_train_batch_end(self, *_: object, **__: object) -> None:
            """End the step."""
            taken.end_step()

        def on_exception(self, *_: object, **__: object) -> None:
            """Keep what was recorded."""
            taken.close()

    return MansardCallback()


def transformers_callback(taken: Profile) -> Any:
    """A callback for ``transformers.Trainer(callbacks=[...])``.

    One step of the trainer is one step here, all its gradient accumulation included.

    Args:
        taken: an entered ``mansard.profile``.
    """
    from transformers import TrainerCallback  # noqa: PLC0415

    class MansardCallback(TrainerCallback):  # type: ignore[misc]
        """One optimizer step is one step."""

        def on_step_begin(self, *_: object, **__: object) -> None:
            """Begin the step."""
            taken.begin_step()

        def on_step_end(self, *_: object, **__: object) -> None:
            """End the step."""
            taken.end_step()

    return MansardCallback()


def keras_callback(taken: Profile) -> Any:
    """A callback for ``model.fit(callbacks=[...])``.

    Args:
        taken: an entered ``mansard.profile``.
    """
    from keras.callbacks import Callback  # noqa: PLC0415

    class MansardCallback(Callback):  # type: ignore[misc]
        """One training batch is one step."""

        def on_train_batch_begin(self, *_: object, **__: object) -> None:
            """Begin the step."""
            taken.begin_step()

        def on_train_batch_end(self, *_: object, **__: object) -> None:
            """End the step."""
            taken.end_step()

    return MansardCallback()
