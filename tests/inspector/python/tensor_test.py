# SPDX-License-Identifier: Apache-2.0
"""Arrays of every type as Tensors and back: types, values, addresses, what is copied and what is not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import parallax
import pytest
from parallax import Tensor

PLAIN = [
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
]
# Name of ours -> ml_dtypes' name.
EXTENSION = {
    "bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2", "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu",
}
PACKED = {"int4": "int4", "uint4": "uint4", "int2": "int2", "uint2": "uint2", "float4e2m1": "float4_e2m1fn"}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_types_share_memory_both_ways(name: str) -> None:
    array = np.array([[0, 1, 2], [3, 4, 5]], dtype=name)
    tensor = Tensor(array)
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == (name, (2, 3), array.nbytes)
    assert tensor.address == array.ctypes.data
    back = tensor.numpy()
    assert back.dtype == array.dtype and back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("ours", EXTENSION)
def test_types_of_ml_dtypes_keep_every_bit(ours: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, EXTENSION[ours]))
    array = np.array([[0.5, 1, 2, 4]], dtype=dtype)
    tensor = Tensor(array)
    assert (tensor.dtype, tensor.shape) == (ours, (1, 4))
    assert tensor.address == array.ctypes.data
    assert tensor.numpy().dtype == dtype
    assert tensor.numpy().tobytes() == array.tobytes()


@pytest.mark.parametrize("ours", PACKED)
def test_narrow_types_are_packed_and_unpacked(ours: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, PACKED[ours]))
    numbers = [0, 1, 1, 0, 1] if ours.endswith("2") else [0, 1, 2, 3, 4]
    tensor = Tensor(np.array(numbers, dtype=dtype))
    bits = 2 if ours.endswith("2") else 4
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == (ours, (5,), (5 * bits + 7) // 8)
    np.testing.assert_array_equal(tensor.unpack(), numbers)
    raw = tensor.numpy()
    assert raw.dtype == np.uint8 and raw.size == tensor.nbytes
    assert raw[0] & ((1 << bits) - 1) == int(np.array(numbers[:1], dtype=dtype).view(np.uint8)[0])
    same = Tensor.from_bytes(raw.tobytes(), ours, [5])
    np.testing.assert_array_equal(same.unpack(), numbers)


def test_negative_narrow_integers_keep_their_sign() -> None:
    np.testing.assert_array_equal(Tensor(np.array([-8, 7, -1], dtype=ml_dtypes.int4)).unpack(), [-8, 7, -1])


def test_strings_are_objects() -> None:
    for array in (np.array([["a", "bc"]], dtype=object), np.array([["a", "bc"]]), np.array([[b"a", b"bc"]])):
        tensor = Tensor(array)
        assert (tensor.dtype, tensor.shape) == ("string", (1, 2))
        assert tensor.numpy().tolist() == [["a", "bc"]]
        assert tensor.numpy().dtype == object
    assert Tensor(np.array([b"\xff\xfe"], dtype=object)).numpy().tolist() == [b"\xff\xfe"]


def test_an_object_that_is_no_string_is_named() -> None:
    with pytest.raises(parallax.UsageError, match="element 1 .* is a int; it must be a str or bytes"):
        Tensor(np.array(["a", 3], dtype=object))


def test_noncontiguous_arrays_are_copied_once() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (array.T, array[:, ::2], array[::-1], np.broadcast_to(array[:1], (5, 4))):
        tensor = Tensor(view)
        np.testing.assert_array_equal(tensor.numpy(), view)
        assert not np.shares_memory(tensor.numpy(), array)


def test_bytes_of_the_other_order_are_swapped() -> None:
    array = np.array([1.5, -2], dtype=">f4")
    np.testing.assert_array_equal(Tensor(array).numpy(), [1.5, -2])


def test_unaligned_arrays_are_copied() -> None:
    raw = np.zeros(4 * 8 + 1, np.uint8)
    array = raw[1:].view(np.float64)
    array[:] = [1, 2, 3, 4]
    tensor = Tensor(array)
    assert tensor.address % 8 == 0
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_empty_arrays_and_scalars() -> None:
    assert Tensor(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert Tensor(np.zeros((0, 3), np.float32)).numpy().shape == (0, 3)
    assert Tensor(np.float32(3)).shape == ()
    assert Tensor(np.array(3, np.int64)).numpy() == 3
    assert Tensor(7).dtype == "int64"
    assert Tensor([[1.5, 2.5]]).dtype == "float64"


def test_the_array_stays_alive_with_the_tensor() -> None:
    tensor = Tensor(np.full(1000, 7, np.float32))
    others = [np.full(1000, index, np.float32) for index in range(10)]
    assert tensor.numpy().min() == tensor.numpy().max() == 7 and len(others) == 10


def test_read_only_arrays_stay_read_only() -> None:
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    tensor = Tensor(array)
    assert not tensor.writable and not tensor.numpy().flags.writeable
    assert not np.from_dlpack(tensor).flags.writeable
    assert tensor.clone().writable and tensor.clone().numpy().flags.writeable


def test_writes_are_seen_by_both() -> None:
    array = np.zeros(3, np.float32)
    Tensor(array).numpy()[1] = 5
    assert array[1] == 5


def test_dlpack_gives_the_same_address() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    tensor = Tensor(array)
    assert tensor.__dlpack_device__() == (1, 0)
    other = np.from_dlpack(tensor)
    assert other.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(other, array)
    assert np.from_dlpack(tensor, copy=True).ctypes.data != array.ctypes.data


def test_dlpack_names_its_version() -> None:
    tensor = Tensor(np.zeros(2, np.float32))
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 1)))
    assert "dltensor_versioned" not in repr(tensor.__dlpack__())
    with pytest.raises(BufferError, match="no DLPack form"):
        Tensor(np.array(["a"])).__dlpack__()
    with pytest.raises(BufferError, match="device"):
        tensor.__dlpack__(dl_device=(2, 0))


def test_old_dlpack_copies_what_is_read_only() -> None:
    array = np.zeros(2, np.float32)
    array.flags.writeable = False
    tensor = Tensor(array)
    assert tensor.__dlpack__() is not None
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__(copy=False)


def test_array_protocol_converts_where_asked() -> None:
    tensor = Tensor(np.array([1, 2], np.int32))
    assert np.asarray(tensor).dtype == np.int32
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(tensor, copy=True), tensor.numpy())


def test_bytes_can_be_read_as_another_type() -> None:
    tensor = Tensor(np.array([0x3F80, 0x4000], np.uint16), dtype="bfloat16")
    assert tensor.dtype == "bfloat16"
    np.testing.assert_array_equal(tensor.numpy().astype(np.float32), [1, 2])
    with pytest.raises(parallax.UsageError, match="16 bits and not 32"):
        Tensor(np.zeros(2, np.uint16), dtype="float32")
    with pytest.raises(parallax.UsageError, match="no element type 'half'"):
        Tensor(np.zeros(2, np.uint16), dtype="half")


def test_from_bytes_checks_the_size() -> None:
    assert Tensor.from_bytes(b"\0\0\x80\x3f", "float32", []).numpy() == 1
    with pytest.raises(parallax.UsageError, match="data has 3 bytes; float32\\[1\\] takes 4"):
        Tensor.from_bytes(b"abc", "float32", [1])


def test_types_that_onnx_lacks_are_refused() -> None:
    with pytest.raises(parallax.UsageError, match="dtype datetime64"):
        Tensor(np.array(["2020-01-01"], dtype="datetime64[D]"))


def test_statistics() -> None:
    found = Tensor(np.array([1, -3, 0, np.nan, np.inf], np.float32)).statistics()
    assert (found["count"], found["min"], found["max"], found["zeros"]) == (5, -3, float("inf"), 1)
    assert (found["nan"], found["positive_inf"], found["negative_inf"]) == (1, 1, 0)


def test_description() -> None:
    assert repr(Tensor(np.zeros((2, 3), np.float32))) == "Tensor(float32[2,3])"
    assert len(Tensor(np.zeros((2, 3), np.float32))) == 2
