"""The public names exist, are documented and complete."""

import importlib

import mansard


def test_every_public_name_can_be_reached():
    for name in mansard.__all__:
        assert getattr(mansard, name) is not None


def test_every_public_name_has_a_docstring():
    for name in mansard.__all__:
        if name != "__version__":
            assert getattr(mansard, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    module = importlib.import_module("mansard")
    assert not hasattr(module, "no_such_thing")
