from clamp import clamp


def test_above():
    assert clamp(5, 1, 3) == 3


def test_below():
    assert clamp(0, 1, 3) == 1


def test_inside():
    assert clamp(2, 1, 3) == 2
