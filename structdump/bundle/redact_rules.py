"""What counts as private, as data: shapes of secrets, names that say secret, names of people and machines.

Every pattern that runs on all text starts with one literal character, since the regex engine skips
ahead to such a character about twenty times faster than it tries alternatives; what stands before it
is looked back at. A `Group` holds rules that start otherwise; its probe says whether to run them.
No pattern nests one repeat in another over the same characters, so none can backtrack without end.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LABELS = ("path", "user", "host", "ip", "mac", "email", "secret", "custom")
_TOKEN = rf"<(?:{'|'.join(LABELS)})-\d{{1,9}}>"
TOKEN = re.compile(_TOKEN)
TOKENS = re.compile(f"({_TOKEN})")
TOKEN_AT_END = re.compile(f"{_TOKEN}$")


class Rule(NamedTuple):
    """One shape of secret; group `v`, or else the whole match, becomes the token."""

    name: str
    label: str
    pattern: re.Pattern[str]


class Group(NamedTuple):
    """Rules that can only match in a text where `probe` finds something."""

    probe: re.Pattern[str]
    rules: tuple[Rule, ...]


def _rules(*rules: tuple[str, str], label: str = "secret") -> tuple[Rule, ...]:
    return tuple(Rule(name, label, re.compile(pattern)) for name, pattern in rules)


# --- names that say secret -------------------------------------------------------------------------
# In environment variables, settings in capitals and arguments any of these words will do …
SECRET_NAME = re.compile(
    r"(?i)secret|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|private[_-]?key|bearer|cookie"
    r"|token$|(?:^|[_-])(?:token|key|keys|pass|pwd|pw|creds?|auth|authorization|dsn|conn|connection|jwt|sas"
    r"|pat|netrc)(?=$|[_-])"
)
# … except in these names, which carry none and may explain a compile.
PUBLIC_NAME = re.compile(
    r"(?i)^(?:OLD)?PWD$|^SSH_AUTH_SOCK$|cache[_-]?key"
    r"|key[_-]?(?:size|len|length|block|dtype|heads?|value|padding|cache|dim|proj|states?)"
    r"|(?:sort|primary|foreign|group|block|head|config|event|trace|past)[_-]?keys?$"
    r"|(?:pad|eos|bos|unk|sep|cls|mask|image|audio|video|stop|start|max|min|num|per|next|last)[_-]?token"
)
# In running text only names that mean nothing else, since code is full of `key` and `token`.
STRONG_NAME = re.compile(
    r"(?i)(?:[\w-]{0,40}(?:password|passwd|passphrase|(?:api|access|secret|private|account|signing|encryption)[_-]?key"
    r"|client[_-]?secret|(?:auth|access|api|refresh|bearer|session|hub|hf|github|gitlab|wandb|slack|security"
    r"|identity|bot|personal|deploy|service)[_-]?token)|(?:proxy-)?authorization|(?:set-)?cookie|secrets?"
    r"|credentials?|token|pwd)"
)
# These say signature; what they hold is one if it looks like one.
SIGNATURE_NAME = re.compile(
    r"(?i)(?:x-(?:amz|goog)-)?(?:sig|signature|credential|security-token)|awsaccesskeyid|googleaccessid"
)
# The last letters of all those names, as a cheap look back from `=` or `:`.
_TAILS = (
    "key|eys|ken|ret|ets|ord|swd|pwd|Pwd|_pw|ass|ase|ial|als|red|eds|uth|dsn|kie|ies|onn|ion|pat|sas|jwt|trc"
    "|KEY|EYS|KEN|RET|ETS|ORD|SWD|PWD|_PW|ASS|ASE|IAL|ALS|RED|EDS|UTH|DSN|KIE|IES|ONN|ION|PAT|SAS|JWT|TRC"
)
_SCHEME = r"(?:(?:[Bb]earer|BEARER|[Bb]asic|[Tt]oken|[Dd]igest|[Nn]egotiate)\s+)?"
_PLAIN = r"[^\s\"'`,;&<>(){}\[\]\\]{3,4096}"
_GIVEN = (
    rf"\s{{0,2}}(?:[bru]{{0,2}}(?:\"{_SCHEME}(?P<double>(?:[^\"\\\n]|\\.){{1,4096}})\"|'{_SCHEME}(?P<single>(?:[^'\\\n]|\\.)"
    rf"{{1,4096}})'|\\{{1,4}}[\"']{_SCHEME}(?P<escaped>[^\"'\\\n]{{1,4096}}))|{_SCHEME}(?P<plain>{_PLAIN}))"
)
_LAST = "cdehlnstwyCDEHLNSTWY"  # the last letters of those
COLON = re.compile(
    rf":(?:(?<=[{_LAST}]:)(?<=(?:{_TAILS}):)"
    rf"|(?<=[\"']:)(?:(?<=[{_LAST}].:)(?<=(?:{_TAILS}).:)|(?<=\\.:)(?<=(?:{_TAILS})\\.:)))"
    rf"(?:(?<=[nN]:)(?<=uthorization:)\s?{_SCHEME}(?P<header>[^\n\"'\\]{{3,4096}})"
    rf"|(?<=[eE]:)(?<=ookie:)\s?(?P<cookies>[^\n\"'\\]{{3,4096}})|{_GIVEN})"
)
EQUALS = re.compile(
    rf"=(?:(?<=[g{_LAST}]=)(?<=(?:{_TAILS}|sig|ure|eid)=)"
    rf"|(?<=[{_LAST}] =)(?:(?<=(?:word|sswd|_key|oken|cret|WORD|_KEY|OKEN|CRET) =)|(?= ?[bru]?\\?[\"'])(?<=(?:{_TAILS}) =))"
    rf"|(?<=  =)(?= ?[bru]?\\?[\"'])){_GIVEN}"
)
# The name before them, read backwards.
EMAN = re.compile(r"\s{0,40}[\"']?\\{0,4}([\w-]{1,80})")
# What code gives to such names, and placeholders.
ORDINARY_VALUE = re.compile(
    r"(?i)(?:none|null|true|false|auto|yes|no|on|off|str|int|bool|bytes|float|any|optional|string|[-+]?\d{1,5}(?:\.\d+)?"
    r"|(?:self|cls|args|kwargs|cfg|config|os|tl|torch|typing|t|settings|options|params|environ)\.[\w.]*"
    r"|<[\w|/ -]*>|\[\w+\]|\*{3,}|\.{3}|x{3,}|\$\{?\w+\}?|%\w+%?|\{\w*\})"
)
WORDS = re.compile(r"[^\W\d]*(?:[ .:/*_-]+[^\W\d]*)*")
SIGNATURE_VALUE = re.compile(r"(?=[^\d]{0,200}\d)[\w%/+.~-]{16,4096}=*")
# A value that can be looked for anywhere without hitting ordinary words.
UNMISTAKABLE_VALUE = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^\s/]{10,4096}|[^\s/]{20,4096}")
# Settings under these names hold versions, whose four numbers may look like an address.
VERSION_KEY = re.compile(r"(?i)version|driver|cudnn|cublas|cuda|nccl|rocm|torch|triton")
PATH_KEYS = frozenset({"file", "filename", "program", "path"})

# --- addresses -------------------------------------------------------------------------------------
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = Rule(
    "ip", "ip", re.compile(rf"(?<![\w.])(?!127\.|0\.|255\.)(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?[\w+]|-\w)")
)
# Four numbers after one of these are a version, such as cuDNN's 9.1.0.70.
VERSION_BEFORE = re.compile(
    r"(?i)(?:[=<>~!]=\s*|[<>]\s*|[-_@v]|(?:§|section)\s?|(?:version|driver|release|build|cuda|cudnn|cublas|cufft|curand|cusolver"
    r"|cusparse|cusparselt|cufile|cupti|nccl|nvrtc|nvjitlink|nvtx|nvshmem|runtime|mkl|rocm|hip|miopen|rccl|triton"
    r"|torch|nvidia|cu1[123]|toolkit)[\w.-]*[\"']?\s{0,40}[:=(]{0,2}\s{0,40}[\"'v]?)$"
)
# Standing alone, four numbers are an address if private networks start so, or if too high for a version.
LIKELY_ADDRESS = re.compile(r"10\.|172\.(?:1[6-9]|2\d|3[01])\.|9\d\.|[12]\d\d\.")
_H = "[0-9a-fA-F]"
IPV6_PROBE = re.compile(rf":(?<={_H}:)(?::(?![A-Za-z_]{{0,3}}[g-zG-Z_])|{_H}{{1,4}}:{_H}{{0,4}}:)")
IPV6 = re.compile(
    rf"(?<![\w:.])(?:(?:{_H}{{1,4}}:){{7}}{_H}{{1,4}}|(?:f[cdCD]{_H}{{2}}|[fF][eE][89abAB]{_H}|2{_H}{{3}})"
    rf"(?::{_H}{{1,4}}){{0,6}}::(?:{_H}{{1,4}}(?::{_H}{{1,4}}){{0,6}})?)(?![\w:])"
)
MAC = re.compile(rf"(?<![\w:-])(?:{_H}{{2}}:){{5}}{_H}{{2}}(?![\w:-])")

# --- shapes of secrets -----------------------------------------------------------------------------
_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"

ARGUMENT = re.compile(
    rf"--(?P<name>[A-Za-z][\w-]{{0,60}})(?P<to>(?:=|\s{{1,4}})\\{{0,3}}[\"']?)(?P<v>(?!-|{_TOKEN}){_PLAIN})"
)
GROUPS = (
    Group(
        re.compile(r"://(?:[^\s/@\"'<>\\]{1,255}@|(?:hooks\.slack|discord)\.com/)"),
        _rules(
            ("url_password", r"://(?!<|git@)(?P<v>[^\s/@\"'<>\\]{1,255})@(?=[\w\[])"),
            (
                "webhook",
                r"://(?:hooks\.slack|discord)\.com/(?P<v>(?:services|workflows|triggers|api/webhooks)/[\w/-]{8,255})",
            ),
        ),
    ),
    Group(
        re.compile(r"I(?:(?<=A[KS]I)A|(?<=AI)za)"),
        _rules(
            ("aws_key", _START + r"A[KS]IA[0-9A-Z]{16}" + _END),
            ("google_key", _START + r"AIza[\w-]{35}"),
        ),
    ),
    Group(
        re.compile(r"J(?<=eyJ)"),
        _rules(("jwt", _START + r"eyJ[\w-]{8,8192}\.eyJ[\w-]{4,8192}(?:\.[\w-]{0,8192})?")),
    ),
    Group(
        re.compile(r"_[A-Za-z0-9]{16}(?<=(?:hf|h[pousr]|at|rg|ve|pm|sk|r8|v1)_.{16})"),
        _rules(
            ("huggingface_token", _START + r"(?:hf|api_org)_[A-Za-z0-9]{30,60}" + _END),
            ("github_token", _START + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{40,255})"),
            ("wandb_key", _START + r"wandb_v\d_\w{20,255}"),
            ("service_token", _START + r"(?:[sr]k_live_|npm_|gsk_|r8_|dckr_pat_|dop_v1_)[A-Za-z0-9]{24,255}"),
        ),
    ),
    Group(
        re.compile(
            r"-(?:(?<=sk-)(?<![A-Za-z0-9]sk-)|(?<=xox[a-z]-)|(?<=xapp-)|(?<=gl[a-z][a-z]t-)|(?<=glrt-)|(?<=nvapi-)"
            r"|(?<=pplx-)|(?<=CSPX-)|(?<=pypi-)|(?<=xai-)|(?<=local-)[0-9a-f]{40}|(?<=-----)BEGIN)"
        ),
        _rules(
            (
                "private_key",
                r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}"
                r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
            ),
            ("anthropic_key", _START + r"sk-ant-[\w-]{16,255}"),
            ("openai_key", _START + r"sk-(?=[\w-]{0,255}\d)[\w-]{20,255}"),
            ("slack_token", _START + r"(?:xox[a-z]|xapp)-[\w-]{10,255}"),
            ("gitlab_token", _START + r"gl[a-z]{2,5}-[\w-]{20,255}"),
            ("wandb_key", _START + r"local-[0-9a-f]{40}" + _END),
            ("service_token", _START + r"(?:nvapi-|pplx-|xai-|GOCSPX-|pypi-AgE)[\w-]{24,255}"),
        ),
    ),
    Group(
        re.compile(r"\.(?:\d{1,3}\.\d{1,3}\.\d|(?<=ya29\.)|(?<=SG\.))"),
        _rules(
            ("google_key", _START + r"ya29\.[\w-]{20,2048}"),
            ("service_token", _START + r"SG\.[\w-]{16,64}\.[\w-]{16,128}"),
        )
        + (IPV4,),
    ),
    Group(
        re.compile(r"@(?<=[\w.+%-]@)[A-Za-z0-9-]"),
        _rules(
            (
                "email",
                r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}(?:[a-z]{2}|[A-Z]{2}|com|org|net|edu|gov"
                r"|mil|int|info|biz|dev|app|cloud|tech|email|xyz|online|local|internal|corp|lan|intranet|science"
                r"|systems|research|COM|ORG|NET|EDU|example|invalid|test)(?![\w(\[=-]|\.\w)",
            ),
            label="email",
        ),
    ),
)

# --- people and machines ---------------------------------------------------------------------------
LOCAL_HOSTS = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "::1"})
USER_VARIABLES = frozenset(
    {
        "USER", "LOGNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER", "SLURM_JOB_ACCOUNT", "JUPYTERHUB_USER",
        "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "DOMAIN_USER",
    }
)  # fmt: skip
HOST_VARIABLE = re.compile(
    r"(?:HOST|HOSTNAME|COMPUTERNAME|MASTER_ADDR|NODE_NAME|POD_NAME|SLURMD_NODENAME|SLURM_(?:JOB_|STEP_)?NODELIST"
    r"|SLURM_SUBMIT_HOST|SLURM_LAUNCH_NODE_IPADDR|SLURM_CLUSTER_NAME|PBS_O_HOST|\w+_HOST(?:NAME)?|\w+_(?:IP|ADDR))"
)
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{1,62}(?:\.[A-Za-z0-9-]{1,63}){0,8}")
