import sys

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny networks on busy cores: threads that wait for each other take far longer than one."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
