"""Files that lie at a URL: ``s3://``, ``gs://``, ``hdfs://`` and whatever else fsspec reaches.

A run may be a URL of Parquet files instead of a path. fsspec, the file-system interface that
pandas, Dask and DuckDB share, does the reading; its own packages (s3fs, gcsfs, pyarrow) know the
stores and find the user's credentials where the tools of each store keep them.
"""

import dataclasses
import re
import urllib.parse
from pathlib import Path
from typing import Any

from mansard.errors import InputError, UsageError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
#: What to install for the stores that are asked for most.
_PACKAGES = {
    "s3": "pip install 'mansard[s3]'",
    "gs": "pip install fsspec gcsfs",
    "hdfs": "pip install fsspec pyarrow, and Hadoop's own libhdfs",
}


@dataclasses.dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a URL, with what is asked of a path.

    Attributes:
        url: where it is.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """What follows the last slash."""
        return self.url.rstrip("/").rpartition("/")[2]

    def absolute(self) -> "RemoteFile":
        """Return itself."""
        return self


#: A file of a run.
File = Path | RemoteFile


def scheme_of(text: str) -> str | None:
    """The scheme of a URL in lower case; None for a path."""
    found = _URL.match(text)
    return found[1].lower() if found else None


def local_path(text: str) -> Path | None:
    """The path that a text or a ``file://`` URL means; None for any other URL."""
    scheme = scheme_of(text)
    if scheme is None:
        return Path(text)
    if scheme != "file":
        return None
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(text).path))


def path_of(source: Path | str) -> Path | str:
    """A source as it was given, but a ``file://`` URL as a path."""
    text = str(source)
    return source if scheme_of(text) is None else local_path(text) or source


def filesystem(scheme: str) -> Any:
    """The file system of fsspec for a scheme.

    Raises:
        UsageError: there is none, or a package for it is missing.
    """
    install = _PACKAGES.get(scheme, "pip install fsspec, and the package that it names")
    try:
        import fsspec  # noqa: PLC0415  (only who reads from a store pays for it)

        return fsspec.filesystem(scheme)
    except ImportError as error:
        raise UsageError(
            f"{scheme}:// cannot be read: {_first_line(error)}. Install it: {install}",
            slug="remote-file",
        ) from error
    except Exception as error:
        raise UsageError(
            f"{scheme}:// cannot be read: {_first_line(error)}", slug="remote-file"
        ) from error


def listed(url: str, suffix: str) -> tuple[list[RemoteFile], bool]:
    """Files behind a URL: itself, or those in the folder that it names.

    Args:
        url: of a file or a folder.
        suffix: of the files of a folder that count.

    Returns:
        The files by name, and whether the URL is a folder.

    Raises:
        InputError: nothing is there, or it may not be read.
    """
    store = filesystem(scheme_of(url) or "")
    try:
        if store.isfile(url):
            return [RemoteFile(url)], False
        entries = store.ls(url, detail=True) if store.isdir(url) else []
        names = sorted(entry["name"] for entry in entries if entry["type"] == "file")
        found = [RemoteFile(str(store.unstrip_protocol(name))) for name in names]
    except Exception as error:  # every store has errors of its own
        raise InputError(
            f"cannot read {url}: {type(error).__name__}: {_first_line(error)}", slug="remote-file"
        ) from error
    kept = [file for file in found if file.name.endswith(suffix)]
    if not kept:
        raise InputError(f"there is no {suffix} file at {url}", slug="remote-file")
    return kept, True


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
