"""What `anyshape.translation` takes, keeps and forgets."""

from __future__ import annotations

import pytest

import anyshape
from anyshape.findings import UsageError
from anyshape.modules.registered import collect_operators, collect_translations


def twice(x: object) -> object:
    return x


def test_a_decorator_registers_and_gives_the_function_back() -> None:
    with anyshape.translation("registered::decorated", len):
        assert anyshape.translation("registered::decorated")(twice) is twice
        assert collect_translations()["registered::decorated"].function is twice
    assert "registered::decorated" not in collect_translations()


def test_a_block_registers_for_its_own_length() -> None:
    with anyshape.translation("registered::block", twice):
        assert "registered::block" in collect_translations()
    assert "registered::block" not in collect_translations()


def test_the_innermost_block_counts() -> None:
    with anyshape.translation("registered::nested", twice):
        with anyshape.translation("registered::nested", len):
            assert collect_translations()["registered::nested"].function is len
        assert collect_translations()["registered::nested"].function is twice


def test_what_is_given_to_a_call_goes_before_what_is_registered() -> None:
    with anyshape.translation("registered::both", twice):
        assert collect_translations({"registered::both": len})["registered::both"].function is len
        assert collect_translations()["registered::both"].function is twice


def test_the_function_of_a_node_is_known_by_the_nodes_name() -> None:
    with anyshape.translation("registered::kept", twice, node="mylib::Kept"):
        assert collect_operators()["mylib::Kept"] is twice
        assert collect_operators({"mylib::Kept": len})["mylib::Kept"] is len
    assert "mylib::Kept" not in collect_operators()


@pytest.mark.parametrize(
    "name", ["scale", "mylib.scale", "mylib::", "::scale", "mylib::scale.int.out", "my lib::scale"]
)
def test_a_name_without_its_two_parts_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="AS057"):
        anyshape.translation(name, twice)


def test_torchs_own_spelling_is_answered_with_ours() -> None:
    with pytest.raises(UsageError, match="'mylib::scale'"):
        anyshape.translation("torch.ops.mylib.scale", twice)


@pytest.mark.parametrize("node", ["Scale", "ai.onnx::Scale", "com.microsoft::Scale"])
def test_a_node_has_a_domain_of_its_own(node: str) -> None:
    with pytest.raises(UsageError, match="AS057"):
        anyshape.translation("mylib::scale", twice, node=node)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(UsageError, match="int, not a function"):
        anyshape.translation("mylib::scale", 3)  # type: ignore[call-overload]
