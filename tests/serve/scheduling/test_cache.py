"""The cache of answers."""

from lpcfg.serve.scheduling.cache import Cache


def test_the_least_recently_used_answers_go_first() -> None:
    cache = Cache[str](3 * (1024 + 100))
    for key in "abc":
        cache.put(key, key, 100)
    assert cache.get("a") == "a"
    cache.put("d", "d", 100)
    assert [cache.get(key) is not None for key in "abcd"] == [True, False, True, True]
    assert (cache.hits, cache.misses) == (4, 1)
    assert cache.bytes == 3 * (1024 + 100)


def test_the_cache_stays_within_its_bytes() -> None:
    cache = Cache[object](10_000)
    for number in range(1000):
        cache.put(number, number, number % 3000)
        assert cache.bytes <= 10_000
    cache.put("too large", 0, 10_000)
    assert cache.get("too large") is None
    Cache(0).put("nothing", 0, 0)
    assert Cache(0).get("nothing") is None
