"""The Huffman code of RFC 7541, appendix B.

The code is canonical: the lengths of its words give the words. It is decoded a byte at a time: a state is a node of the
code's tree, and the transition of a byte from a state is computed when it first occurs.
"""

from typing import Final

from argosy_runtime.http2.errors import ErrorCode, PeerError

_LENGTHS: Final = bytes.fromhex(
    "0d171c1c1c1c1c1c1c181e1c1c1e1c1c1c1c1c1c1c1c1e1c1c1c1c1c1c1c1c1c060a0a0c0d06080b0a0a080b0806060605050506060606"
    "06060607080f060c0a0d06070707070707070707070707070707070707070707070807080d130d0e060f05060506050606060507070606"
    "060506070605050607070707070f0b0e0d1c14161414161616171617171717171817181816171817171717151617161717181615141616"
    "1717151716161815161717151516151716171714161616171616171a1a1413161716191a1a1a1b1b1a181913151a1b1b1a1b1815151a1a"
    "1c1b1b1b14181415161515171616191918181a171a1b1a1a1b1b1b1b1b1c1b1b1b1b1b1a1e"
)
"""The length in bits of the word of each byte, and of the end of the string (256)."""
_END: Final = 256
_LEAF: Final = 1 << 16
_ROOT: Final = 0


def _tree() -> list[list[int]]:
    """Return nodes as the indexes of their two children; a leaf's index is `_LEAF` and its symbol."""
    nodes: list[list[int]] = [[-1, -1]]
    word = last = 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(_LENGTHS)):
        word <<= length - last
        last = length
        node = _ROOT
        for bit in range(length - 1, 0, -1):
            side = word >> bit & 1
            if nodes[node][side] < 0:
                nodes.append([-1, -1])
                nodes[node][side] = len(nodes) - 1
            node = nodes[node][side]
        nodes[node][word & 1] = _LEAF | symbol
        word += 1
    return nodes


def _paddings(nodes: list[list[int]]) -> frozenset[int]:
    """Return the states in which a string may end: after at most seven bits, all ones."""
    states = [_ROOT]
    for _ in range(7):
        states.append(nodes[states[-1]][1])
    return frozenset(states)


_NODES: Final = _tree()
_PADDINGS: Final = _paddings(_NODES)
_STEPS: Final[dict[int, tuple[int, bytes]]] = {}


def _error(message: str) -> PeerError:
    return PeerError(ErrorCode.COMPRESSION_ERROR, message)


def _step(state: int, byte: int) -> tuple[int, bytes]:
    """Return the state behind a byte, and what it decoded."""
    decoded, node = bytearray(), state
    for bit in range(7, -1, -1):
        node = _NODES[node][byte >> bit & 1]
        if node >= _LEAF:
            symbol = node & ~_LEAF
            if symbol == _END:
                raise _error("the end of a string inside it")
            decoded.append(symbol)
            node = _ROOT
    step = _STEPS[state << 8 | byte] = (node, bytes(decoded))
    return step


def decode(data: bytes) -> bytes:
    """Return the decoded string. Raises PeerError for bad padding or an end inside it."""
    decoded: list[bytes] = []
    state = _ROOT
    for byte in data:
        state, piece = _STEPS.get(state << 8 | byte) or _step(state, byte)
        decoded.append(piece)
    if state not in _PADDINGS:
        raise _error("bad padding of a string")
    return b"".join(decoded)
