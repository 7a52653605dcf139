"""Who signed a commit, judged by a list of allowed signers that the caller gives: no commit can vouch for itself."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lloom_gitops.gitstore.command import Git
from lloom_gitops.gitstore.revisions import resolve


class Trust(StrEnum):
    """What a commit's signature proves."""

    TRUSTED = "trusted"
    """A good signature by one of the allowed signers (SSH), or by a key that the local keyring trusts (OpenPGP)."""
    STRANGER = "stranger"
    """A good signature by somebody else."""
    LAPSED = "lapsed"
    """A signature whose key, or which itself, expired or was revoked."""
    UNSIGNED = "unsigned"
    BAD = "bad"
    """The content is not what was signed."""
    UNCHECKED = "unchecked"
    """It can't be checked here: the key or the checking program is missing."""


# git-log(1), %G?
_BY_LETTER = {
    "G": Trust.TRUSTED,
    "U": Trust.STRANGER,
    "X": Trust.LAPSED,
    "Y": Trust.LAPSED,
    "R": Trust.LAPSED,
    "N": Trust.UNSIGNED,
    "B": Trust.BAD,
}


@dataclass(frozen=True, slots=True)
class Signature:
    """`signer`: the principal of the allowed signers, or the OpenPGP user id; `key`: its fingerprint; "" if unknown."""

    trust: Trust
    signer: str
    key: str


def read_signature(git: Git, rev: str, allowed_signers: bytes) -> Signature:
    """The signature of one commit, judged by `allowed_signers`, the content of a file as in ssh-keygen(1).

    What the repository's own configuration names as allowed signers plays no part.
    """
    oid = resolve(git, rev)
    with tempfile.TemporaryDirectory(prefix="lloom-gitops-") as room:
        signers = Path(room, "allowed_signers")
        signers.write_bytes(allowed_signers)
        settings = ("-c", f"gpg.ssh.allowedSignersFile={signers}", "-c", "gpg.ssh.revocationFile=")
        told = git.run(*settings, "log", "-1", "--no-color", "--format=%G?%x00%GS%x00%GF", oid).line
    letter, signer, key = told.split("\0")
    return Signature(_BY_LETTER.get(letter, Trust.UNCHECKED), signer, key)
