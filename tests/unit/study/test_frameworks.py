"""What is installed is found once, and what to install is said in one sentence."""

import importlib.util

import pytest

from mansard.study.frameworks import absences, nothing_installed

FRAMEWORKS = ("torch", "keras-torch", "keras-jax", "keras-tensorflow")


@pytest.fixture
def installed(monkeypatch):
    """Make only these packages look installed."""

    def only(*packages):
        look = importlib.util.find_spec
        known = {"torch", "keras", "jax", "tensorflow"}
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name: object() if name in packages else None if name in known else look(name),
        )

    return only


def test_nothing_is_absent_where_all_is_installed(installed):
    installed("torch", "keras", "jax", "tensorflow")
    assert absences(FRAMEWORKS) == {}


def test_each_framework_says_what_it_lacks_and_how_to_get_it_from_the_source(installed):
    installed("torch", "jax")
    where = "in the folder of the source"
    assert absences((*FRAMEWORKS, "torch")) == {
        "keras-torch": f"Keras is not installed: pip install '.[keras,torch]' {where}",
        "keras-jax": f"Keras is not installed: pip install '.[keras,jax]' {where}",
        "keras-tensorflow": (
            f"Keras and TensorFlow are not installed: pip install '.[keras,tensorflow]' {where}"
        ),
    }


def test_where_no_cell_can_run_it_is_said_how_many_each_framework_would(cells):
    # 28 cells, of which four are Keras's: two on JAX, one each on TensorFlow and PyTorch.
    assert nothing_installed(cells) == (
        "none of the 28 cells can run here, for their frameworks are not installed. In the folder "
        "of the source, pip install '.[torch]' for 24, '.[keras,jax]' for 2, "
        "'.[keras,tensorflow]' for 1, '.[keras,torch]' for 1 of them"
    )
