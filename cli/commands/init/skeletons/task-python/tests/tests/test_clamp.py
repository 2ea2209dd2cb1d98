import unittest

from clamp import clamp


class ClampTest(unittest.TestCase):
    def test_above(self):
        self.assertEqual(clamp(12, 0, 10), 10)

    def test_below(self):
        self.assertEqual(clamp(-2, 0, 10), 0)

    def test_inside(self):
        self.assertEqual(clamp(7, 0, 10), 7)
