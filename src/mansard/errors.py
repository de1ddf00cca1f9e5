"""Every error that Mansard raises on purpose: one tree, one line each for the user.

MansardError            exit code 2
├── InputError          a file or value that the user gave cannot be used
│   ├── FormatError     the file is not what its reader expects
│   └── UsageError      options that do not fit together
├── OutputError         the result could not be written
├── MachineError        a machine file, or a ceiling in it, is wrong
├── CounterError        a counter table, or a formula in it, is wrong
├── DeviceError         no usable GPU, driver or CPU feature
│   └── PermissionDeniedError   the driver does not let this user read counters
└── CollectError        the collection itself failed
"""


class MansardError(Exception):
    """Base of all errors with a message for the user: what is wrong, where, what to do.

    Attributes:
        slug: name of the paragraph in docs/messages.md that says more.
        exit_code: what the command line returns.
    """

    exit_code = 2

    def __init__(self, message: str, *, slug: str = "") -> None:
        super().__init__(message)
        self.slug = slug


class InputError(MansardError):
    """A file or a value that the user gave cannot be used."""


class FormatError(InputError):
    """The file is not in the format that its reader expects."""


class UsageError(InputError):
    """Options that do not exist or do not fit together."""


class OutputError(MansardError):
    """The result could not be written; what stood there before is untouched."""


class MachineError(MansardError):
    """A machine file, or a ceiling in it, is wrong."""


class CounterError(MansardError):
    """A counter table, or a formula in it, is wrong."""


class DeviceError(MansardError):
    """No usable GPU, driver or processor feature."""


class PermissionDeniedError(DeviceError):
    """The driver does not let this user read hardware counters."""


class CollectError(MansardError):
    """The collection itself failed; what was recorded before is kept."""
