"""What counts as private, as data: names that say secret, addresses, shapes of secrets, people and machines.

No pattern nests one repeat in another over the same characters, so none can backtrack without end.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

LABELS = ("path", "user", "host", "ip", "mac", "email", "secret", "custom")
_TOKEN = rf"<(?:{'|'.join(LABELS)})-\d{{1,9}}>"
TOKEN = re.compile(_TOKEN)
TOKENS = re.compile(f"({_TOKEN})")


class Rule(NamedTuple):
    """One thing to replace: group `v`, or else the whole match, becomes a token of the label.

    In every text that `expression` matches, one of `gates`, in Rust's syntax, finds something. The
    expression starts with a literal where it can, since Python's engine skips ahead to one.
    """

    name: str
    label: str
    gates: tuple[str, ...]
    expression: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when a gate opens for the first time: most never do."""
        return _compiled(self.expression)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def _secret(name: str, gate: str, pattern: str) -> Rule:
    return Rule(name, "secret", (gate,), pattern)


def known_secret(value: str) -> Rule:
    """The rule that finds a secret whose value is known from the environment."""
    return _secret("environment", re.escape(value), re.escape(value))


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
# What is assigned: after a scheme, in quotes (perhaps escaped ones) or plain.
_SCHEME_WORD = r"(?:[Bb]earer|BEARER|[Bb]asic|[Tt]oken|[Nn]egotiate)\s+"
_SCHEME = f"(?:{_SCHEME_WORD})?"
_PLAIN = r"[^\s\"'`,;&<>(){}\[\]\\]{3,4096}"
_GIVEN = (
    rf"\s{{0,2}}(?:[bru]{{0,2}}(?:\"{_SCHEME}(?P<double>(?:[^\"\\\n]|\\.){{1,4096}})\""
    rf"|'{_SCHEME}(?P<single>(?:[^'\\\n]|\\.){{1,4096}})'"
    rf"|\\{{1,16}}[\"']{_SCHEME}(?P<escaped>[^\"'\\\n]{{1,4096}}))|{_SCHEME}(?P<plain>{_PLAIN}))"
)
# The last letters of all those names, as a cheap look back from `:` or `=`.
_TAILS = (
    "key|eys|ken|ret|ets|ord|swd|pwd|Pwd|_pw|ass|ase|ial|als|red|eds|uth|dsn|kie|ies|onn|ion|pat|sas|jwt|trc|Key"
    "|KEY|EYS|KEN|RET|ETS|ORD|SWD|PWD|_PW|ASS|ASE|IAL|ALS|RED|EDS|UTH|DSN|KIE|IES|ONN|ION|PAT|SAS|JWT|TRC"
)
_LAST = "cdehlnstwyCDEHLNSTWY"
_QUOTE_NEXT = r"(?= ?[bru]{0,2}\\{0,16}[\"'])"
_SETTING = (
    r"(?:ass[wW]ord|ass[wW]d|ass[pP]hrase|_key|-key|ikey|skey|tkey|ekey|gkey|nkey|Key|ecrets?|oken|uthorization|ookie"
    r"|redentials?|pwd|Pwd)\\{0,16}[\"']? {0,40}[:=]",
    r"(?:TOKEN|KEY|PASS|PWD|PW|CRED|AUTH|DSN|CONN|JWT|SAS|PAT|NETRC|BEARER|SECRET|COOKIE)[A-Za-z0-9_-]{0,80}"
    r"\\{0,16}[\"']? {0,40}[:=]",
    r"(?:sig|Sig|SIG|nature|NATURE|eyid|eyId|EYID|essid|essId|ESSID)=",
)
COLON = Rule(
    "setting",
    "secret",
    _SETTING,
    (
        rf":(?:(?<=[{_LAST}]:)(?<=(?:{_TAILS}):)"
        rf"|(?<=[\"']:)(?:(?<=[{_LAST}].:)(?<=(?:{_TAILS}).:)|(?<=\\.:)))"
        rf"(?:(?<=[nN]:)(?<=uthorization:)\s?(?:{_SCHEME_WORD}(?P<header>[^\s\"'\\(){{}}]{{1,4096}})"
        r"|(?P<line>[^\n\"'\\]{3,4096}))"
        rf"|(?<=[eE]:)(?<=ookie:)\s?(?P<cookies>[^\n\"'\\]{{3,4096}})|{_GIVEN})"
    ),
)
EQUALS = Rule(
    "setting",
    "secret",
    _SETTING,
    (
        rf"=(?:(?<=[gd{_LAST}]=)(?<=(?:{_TAILS}|sig|Sig|SIG|ure|URE|eid|eId|sid|sId)=)"
        rf"|(?<=[{_LAST}] =)(?:(?<=(?:word|sswd|_key|oken|cret|WORD|_KEY|OKEN|CRET) =)"
        rf"|{_QUOTE_NEXT}(?<=(?:{_TAILS}) =))"
        rf"|(?<=  =){_QUOTE_NEXT}){_GIVEN}"
    ),
)
# The name before them, read backwards.
EMAN = re.compile(r" {0,40}[\"']?\\{0,16}([\w-]{1,80})")
ARGUMENT = Rule(
    "argument",
    "secret",
    (
        r"--[A-Za-z0-9_-]*(?i:secret|pass|phrase|cred|key|bearer|cookie|token|pw|auth|dsn|conn|jwt|sas|pat|netrc)",
    ),
    (rf"--(?P<name>[A-Za-z][\w-]{{0,60}})(?:=|\s{{1,4}})\\{{0,3}}[\"']?(?P<v>(?!-|{_TOKEN}){_PLAIN})"),
)
# What code gives to such names, and placeholders.
ORDINARY_VALUE = re.compile(
    r"(?i)(?:none|null|true|false|auto|yes|no|on|off|str|int|bool|bytes|float|any|optional|string"
    r"|[-+]?\d{1,5}(?:\.\d+)?"
    r"|(?:self|cls|args|kwargs|cfg|config|os|tl|torch|typing|t|settings|options|params|environ)\.[\w.]*"
    r"|<[\w|/ -]*>|\[\w+\]|\*{3,}|\.{3}|x{3,}|\$\{?\w+\}?|%\w+%?|\{\w*\})"
)
WORDS = re.compile(r"(?:[^\W\d]|[ .:/*-])*")
SIGNATURE_VALUE = re.compile(r"(?=[^\d]{0,200}\d)[\w%/+.~-]{16}")
# A value that can be looked for anywhere without hitting ordinary words.
UNMISTAKABLE_VALUE = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^\s/]{10,4096}|[^\s/]{20,4096}")
# Settings under these names hold versions, whose four numbers may look like an address.
VERSION_KEY = re.compile(r"(?i)version|driver|cudnn|cublas|cuda|nccl|rocm|torch|triton")
PATH_KEYS = frozenset({"file", "filename", "program", "path"})

# --- addresses -------------------------------------------------------------------------------------
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = Rule(
    "ip",
    "ip",
    (r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]",),
    (rf"(?<![\w.])(?!127\.|0\.|255\.)(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?[\w+]|-\w)"),
)
# Four numbers after one of these are a version, such as cuDNN's 9.1.0.70 …
VERSION_SIGN = re.compile(r"[=<>~!]=\s?$|(?<!\d)[<>]\s?$|[-_@vV]$|(?:§|[Ss]ection)\s?$")
VERSION_WORD = re.compile(
    r"(?i)version|driver|release|build|cuda|cudnn|cublas|cufft|curand|cusolver|cusparse|cufile|cupti|nccl|nvrtc"
    r"|nvjitlink|nvtx|nvshmem|runtime|mkl|rocm|hip|miopen|rccl|triton|torch|nvidia|toolkit"
)
# … if no more than this stands between.
VERSION_GAP = re.compile(r"[\w.-]*[\"']?\s{0,40}[:=(]{0,2}\s{0,40}[\"'vV]?")
# Standing alone, four numbers are an address if private networks start so, or if too high for a version.
LIKELY_ADDRESS = re.compile(r"10\.|172\.(?:1[6-9]|2\d|3[01])\.|9\d\.|[12]\d\d\.")
_H = "[0-9a-fA-F]"
MAC = Rule(
    "mac",
    "mac",
    (rf":{_H}{{2}}:{_H}{{2}}:",),
    (rf"(?<![\w:-])(?:{_H}{{2}}:){{5}}{_H}{{2}}(?![\w:-])"),
)
IPV6 = Rule(
    "ip",
    "ip",
    (rf":{_H}{{1,4}}:{_H}{{1,4}}:", rf"{_H}{{4}}:(?:{_H}{{0,4}}:){{1,7}}"),
    (
        rf"(?<![\w:.])(?:(?:{_H}{{1,4}}:){{7}}{_H}{{1,4}}|(?:f[cdCD]{_H}{{2}}|[fF][eE][89abAB]{_H}|2{_H}{{3}})"
        rf"(?::{_H}{{1,4}}){{0,6}}::(?:{_H}{{1,4}}(?::{_H}{{1,4}}){{0,6}})?)(?![\w:])"
    ),
)

# --- shapes of secrets -----------------------------------------------------------------------------
_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
_TLD = (
    "[a-z]{2}|[A-Z]{2}|com|org|net|edu|gov|mil|int|info|biz|dev|app|cloud|tech|email|xyz|online|local|internal|corp"
    "|lan|intranet|science|systems|research|COM|ORG|NET|EDU|example|invalid|test"
)
SHAPES = (
    _secret(
        "url_password", r"://[^\s/@\"'<>\\]{1,255}@", r"://(?!<|git@)(?P<v>[^\s/@\"'<>\\]{1,255})@(?=[\w\[])"
    ),
    _secret(
        "webhook",
        r"://(?:hooks\.slack|discord)\.com/",
        r"://(?:hooks\.slack|discord)\.com/(?P<v>(?:services|workflows|triggers|api/webhooks)/[\w/-]{8,255})",
    ),
    _secret(
        "private_key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
        r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}"
        r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _secret("aws_key", r"A[KS]IA[0-9A-Z]{16}", r"A[KS]IA(?<![A-Za-z0-9]....)[0-9A-Z]{16}" + _END),
    _secret("google_key", r"AIza[A-Za-z0-9_-]{35}", r"AIza(?<![A-Za-z0-9]AIza)[A-Za-z0-9_-]{35}"),
    _secret("google_key", r"ya29\.[A-Za-z0-9_-]{20}", r"ya29\.(?<![A-Za-z0-9]ya29\.)[A-Za-z0-9_-]{20,2048}"),
    _secret("google_key", r"GOCSPX-[A-Za-z0-9_-]{24}", r"GOCSPX-[A-Za-z0-9_-]{24,255}"),
    _secret(
        "jwt",
        r"eyJ[A-Za-z0-9_-]{8}",
        r"eyJ(?<![A-Za-z0-9]eyJ)[A-Za-z0-9_-]{8,8192}\.eyJ[A-Za-z0-9_-]{4,8192}(?:\.[A-Za-z0-9_-]{0,8192})?",
    ),
    _secret(
        "huggingface_token",
        r"(?:hf|api_org)_[A-Za-z0-9]{30}",
        _START + r"(?:hf|api_org)_[A-Za-z0-9]{30,60}" + _END,
    ),
    _secret("github_token", r"gh[pousr]_[A-Za-z0-9]{30}", r"gh(?<![A-Za-z0-9]gh)[pousr]_[A-Za-z0-9]{30,255}"),
    _secret("github_token", r"github_pat_[A-Za-z0-9_]{40}", r"github_pat_[A-Za-z0-9_]{40,255}"),
    _secret(
        "gitlab_token",
        r"gl(?:pat|rt|dt|ptt|ft|cbt|agent|soat|imt|oas)-[A-Za-z0-9_-]{20}",
        r"gl(?<![A-Za-z0-9]gl)(?:pat|rt|dt|ptt|ft|cbt|agent|soat|imt|oas)-[A-Za-z0-9_-]{20,255}",
    ),
    _secret(
        "anthropic_key", r"sk-ant-[A-Za-z0-9_-]{16}", r"sk-ant-(?<![A-Za-z0-9]sk-ant-)[A-Za-z0-9_-]{16,255}"
    ),
    _secret(
        "openai_key",
        r"sk-[A-Za-z0-9_-]{20}",
        r"sk-(?<![A-Za-z0-9]sk-)(?=[A-Za-z0-9_-]{0,255}\d)[A-Za-z0-9_-]{20,255}",
    ),
    _secret(
        "slack_token",
        r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10}",
        _START + r"(?:xox[a-z]|xapp)-(?=[A-Za-z0-9-]{0,255}\d)[A-Za-z0-9-]{10,255}",
    ),
    _secret("wandb_key", r"wandb_v[0-9]_[A-Za-z0-9_]{20}", r"wandb_v\d_[A-Za-z0-9_]{20,255}"),
    _secret("wandb_key", r"local-[0-9a-f]{40}", r"local-(?<![A-Za-z0-9]local-)[0-9a-f]{40}" + _END),
    _secret(
        "service_token",
        r"(?:nvapi-|pplx-|xai-|pypi-AgE)[A-Za-z0-9_-]{24}",
        _START + r"(?:nvapi-|pplx-|xai-|pypi-AgE)[A-Za-z0-9_-]{24,255}",
    ),
    _secret(
        "service_token",
        r"(?:[sr]k_live_|npm_|gsk_|r8_|dckr_pat_|dop_v1_)[A-Za-z0-9]{24}",
        _START + r"(?:[sr]k_live_|npm_|gsk_|r8_|dckr_pat_|dop_v1_)[A-Za-z0-9]{24,255}",
    ),
    _secret(
        "service_token",
        r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16}",
        r"SG\.(?<![A-Za-z0-9]SG\.)[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}",
    ),
)
EMAIL = Rule(
    "email",
    "email",
    (r"[A-Za-z0-9_.+%-]@[A-Za-z0-9-]+\.[A-Za-z0-9]",),
    (
        rf"(?<![A-Za-z0-9_.+%-])[A-Za-z0-9_.+%-]{{1,64}}@(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{_TLD})(?![\w(\[=-]|\.\w)"
    ),
)
# Hosts that everybody knows; any other in a URL may be somebody's own.
_PUBLIC_HOSTS = """
    github\\.com|githubusercontent\\.com|github\\.io|gitlab\\.com|pytorch\\.org|python\\.org|pypi\\.org
    |pythonhosted\\.org|huggingface\\.co|hf\\.co|nvidia\\.com|amd\\.com|intel\\.com|arm\\.com|google\\.com
    |googlesource\\.com|microsoft\\.com|apple\\.com|facebook\\.com|fb\\.com|meta\\.com|fburl\\.com|goo\\.gl|bit\\.ly
    |wikipedia\\.org|arxiv\\.org|doi\\.org|readthedocs\\.(?:io|org)|stackoverflow\\.com|openai\\.com|anthropic\\.com
    |kernel\\.org|gnu\\.org|apache\\.org|llvm\\.org|w3\\.org|json-schema\\.org|opensource\\.org
    |slack\\.com|discord\\.com|vllm\\.ai|sglang\\.ai
    |triton-lang\\.org|cppreference\\.com|numpy\\.org|scipy\\.org|sympy\\.org|schema\\.org|xmlsoap\\.org
""".replace("\n", "").replace(" ", "")
URL_HOST = Rule(
    "url_host",
    "host",
    ("://",),
    (
        r"://(?:<secret-\d{1,9}>@|[\w.-]{1,64}@)?"
        rf"(?!(?:[\w-]{{1,63}}\.){{0,8}}(?:{_PUBLIC_HOSTS})(?![\w.-]*\w))"
        r"(?P<v>(?:[A-Za-z0-9_-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![\w<-])"
    ),
)
# Literals alone are looked for at 8 GB/s, so they come before the gates of each shape.
SHAPE_HINT = (
    r"://|-----BEGIN|A[KS]IA|AIza|ya29\.|GOCSPX-|eyJ|hf_|api_org_|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|sk-|xox[a-z]-"
    r"|xapp-|wandb_v|local-|nvapi-|pplx-|xai-|pypi-AgE|k_live_|npm_|gsk_|r8_|dckr_pat_|dop_v1_|SG\."
)
# Specific shapes before what only a name tells.
BEFORE_PATHS = (*SHAPES, ARGUMENT, EQUALS, COLON, EMAIL, URL_HOST)
AFTER_PATHS = (MAC, IPV6, IPV4)
GATES_BEFORE = (SHAPE_HINT, *(pattern for rule in (ARGUMENT, EQUALS, EMAIL) for pattern in rule.gates))
GATES_AFTER = (*IPV6.gates, *IPV4.gates)

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
