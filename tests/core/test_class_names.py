"""Classes by name, for other processes."""

from typing import Any

import pytest

from bench_core import InputError, find_class, remember_class


def test_a_class_is_found_again_by_its_name() -> None:
    found: Any = find_class("bench_models.path_of_models:PathOfModels")
    assert found.__name__ == "PathOfModels"
    assert remember_class(found) == "bench_models.path_of_models:PathOfModels"


def test_a_class_that_no_import_finds_is_kept_for_this_process() -> None:
    class Here:
        pass

    assert find_class(remember_class(Here)) is Here


@pytest.mark.parametrize("spelling", ["not_there:Model", "math:Model", "math:pi"])
def test_one_that_is_not_there_is_a_line_with_the_remedy(spelling: str) -> None:
    with pytest.raises(InputError, match=f"{spelling}: .*; install its plugin, or name its module"):
        find_class(spelling)
