def test_(): pass
