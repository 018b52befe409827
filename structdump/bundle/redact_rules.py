"""What counts as private, as data: shapes of secrets, names that say secret, public paths, common words.

A `Group` holds the rules that share an anchor. Its probe decides whether the rules run on a text at
all, and starts with one literal character, since the regex engine skips ahead to such a character
about twenty times faster than it tries alternatives. No pattern nests one repeat in another over the
same characters, so none can backtrack without end.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import NamedTuple

_LABELS = "path|user|host|ip|mac|email|secret|custom"
TOKEN = re.compile(rf"<(?:{_LABELS})-\d+>")
TOKENS = re.compile(rf"(<(?:{_LABELS})-\d+>)")
TOKEN_AT_END = re.compile(rf"<(?:{_LABELS})-\d{{1,9}}>$")


class Rule(NamedTuple):
    """One shape of secret; group `v`, or else the whole match, becomes the token.

    A group `name` is the name that the value is given to, and must say secret for the rule to hold.
    """

    name: str
    pattern: re.Pattern[str]
    label: str = "secret"


class Group(NamedTuple):
    """Rules that can only match in a text where `probe` finds something."""

    probe: re.Pattern[str]
    rules: tuple[Rule, ...]


def _rules(label: str = "secret", **patterns: str) -> tuple[Rule, ...]:
    return tuple(Rule(name, re.compile(pattern), label) for name, pattern in patterns.items())


# --- names that say secret -------------------------------------------------------------------------
# In environment variables and argument names any of these words will do …
SECRET_NAME = re.compile(
    r"(?i)secret|passw(?:or)?d|passphrase|credential|api[_-]?key|access[_-]?key|private[_-]?key|bearer|cookie"
    r"|token$|(?:^|[_-])(?:token|key|keys|pass|pwd|pw|creds?|auth|authorization|dsn|conn|connection|jwt|sas|pat|netrc)"
    r"(?=$|[_-])"
)
# … except in these names, which carry none and may explain a compile.
PUBLIC_NAME = re.compile(
    r"(?i)^(?:OLD)?PWD$|cache[_-]?key|key[_-]?(?:size|len|length|block|dtype|heads?|value|padding|cache|dim|proj)"
    r"|(?:sort|primary|foreign|group|block|head|config|event|trace|past)[_-]?keys?$|(?:pad|eos|bos|unk|sep|cls|mask|image"
    r"|audio|video|stop|decoder[_-]start|max|min|num|per|next|last)[_-]?token|^SSH_AUTH_SOCK$"
)
# In running text only names that mean nothing else, since code is full of `key` and `token`.
_STRONG = (
    r"(?:\w{0,40}(?:password|passwd|passphrase|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key"
    r"|client[_-]?secret|(?:auth|access|api|refresh|bearer|session|hub|hf|github|gitlab|wandb|slack|security|identity|bot"
    r"|personal|deploy|service)[_-]?token)|token|secret|credentials?)"
)
STRONG_NAME = re.compile(rf"(?i)[\w-]{{0,20}}{_STRONG}")
_VALUE = r"(?!<(?:secret|custom|path|user)-)[^\s\"'`,;&<>(){}\[\]\\]{4,4096}"
_QUOTED = r"(?!<(?:secret|custom|path|user)-)[^\"'\n\\]{4,4096}"
# The last letters of all those names, as a cheap look back from `=` or `:`.
_TAILS = "key|eys|ken|ret|ets|ord|swd|pwd|_pw|ass|ase|ial|als|red|eds|uth|dsn|kie|ies|onn|ion|pat|sas|jwt|trc"
ORDINARY_VALUE = re.compile(
    r"(?i)(?:none|null|true|false|auto|yes|no|on|off|str|int|bool|bytes|optional|[-+]?\d{1,5}(?:\.\d+)?"
    r"|(?:self|cls|args|kwargs|cfg|config|os|tl|torch|typing|t|settings|options|params)\.[\w.]*)"
)

# A value that can be looked for anywhere without hitting ordinary words.
UNMISTAKABLE_VALUE = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[^\s/]{10,4096}|[^\s/]{20,4096}")
# Settings under these names hold versions, whose four numbers may look like an address.
VERSION_KEY = re.compile(r"(?i)version|driver|cudnn|cublas|cuda|nccl|rocm|torch|triton")

_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"

GROUPS = (
    Group(
        re.compile(r"-(?:(?<=-----)BEGIN|(?<=--)[A-Za-z])"),
        _rules(
            private_key=r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}"
            r"(?:-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
            argument=rf"--(?P<name>[A-Za-z][\w-]{{0,60}})(?:=|\s{{1,4}})\\?[\"']?(?P<v>(?!-){_VALUE})",
        ),
    ),
    Group(
        re.compile(
            rf"(?i):(?://|(?<=[a-z]:)(?<=(?:{_TAILS}):)|(?<=[a-z][\"']:)(?<=(?:{_TAILS})[\"']:)"
            rf"|(?<=\\[\"']:)(?<=(?:{_TAILS})\\[\"']:))"
        ),
        _rules(
            url_password=r"://(?P<v>(?!<)[^\s/@\"'<>\\]{1,255})@(?=[\w\[])",
            webhook=r"://(?:hooks\.slack|discord)\.com/(?P<v>(?:services|workflows|triggers|api/webhooks)/[\w/-]{8,255})",
            header=r"(?i)authorization\\?[\"']?\s?[:=]\s?\\?[\"']?(?:(?:bearer|basic|token|digest|negotiate)\s+)?"
            rf"(?P<v>{_QUOTED})",
            bearer=r"(?i)(?<![a-z])bearer\s+(?P<v>[\w.~+/=-]{16,4096})",
            setting=r"(?<![A-Za-z0-9_$])(?P<name>[A-Z][A-Z0-9_]{2,60})(?:\\?[\"'])?\s?:\s?\\?[\"']?"
            rf"(?P<v>{_VALUE})",
            named=rf"(?i)(?<![A-Za-z0-9_])[\w-]{{0,20}}{_STRONG}(?:\\?[\"'])?\s?:\s?[bru]?\\?[\"'](?P<v>{_QUOTED})",
        ),
    ),
    Group(
        re.compile(
            rf"(?i)=(?:(?<=[a-z]=)(?<=(?:{_TAILS}|sig|ure|eid)=)|(?= ?[bru]?\\?[\"'])(?<=(?:{_TAILS})[ \"']=))"
        ),
        _rules(
            url_signature=r"(?i)[?&](?:sig|signature|x-amz-(?:signature|credential|security-token)|awsaccesskeyid"
            r"|x-goog-(?:signature|credential)|googleaccessid|[\w-]{0,20}(?:token|key|secret|password))="
            r"(?P<v>(?!<)[^\s&\"'<>\\#]{4,4096})",
            connection=r"(?:AccountKey|SharedAccessKey|SharedAccessSignature|[Pp]assword|[Pp]wd)="
            r"(?P<v>(?!<)[^\s;\"'<>\\(),]{3,4096})",
            variable=r"(?<![A-Za-z0-9_])(?P<name>[A-Z][A-Z0-9_]{2,60}) ?=\s?[bru]?\\?[\"']?"
            rf"(?P<v>{_VALUE})",
            named=rf"(?i)(?<![A-Za-z0-9_])[\w-]{{0,20}}{_STRONG}\s?=\s?[bru]?\\?[\"'](?P<v>{_QUOTED})",
            plain=rf"(?i)(?<![A-Za-z0-9_])(?P<name>{_STRONG})=(?P<v>{_VALUE})",
        ),
    ),
    Group(
        re.compile(r"I(?:(?<=A[KS]I)A|(?<=AI)za)"),
        _rules(
            aws_key=_START + r"A[KS]IA[0-9A-Z]{16}" + _END,
            google_key=_START + r"AIza[\w-]{35}",
        ),
    ),
    Group(
        re.compile(r"J(?<=eyJ)"),
        _rules(jwt=_START + r"eyJ[\w-]{8,8192}\.eyJ[\w-]{4,8192}(?:\.[\w-]{0,8192})?"),
    ),
    Group(
        re.compile(r"_[A-Za-z0-9]{16}"),
        _rules(
            huggingface_token=_START + r"(?:hf|api_org)_[A-Za-z0-9]{30,60}" + _END,
            github_token=_START + r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{40,255})",
            wandb_key=_START + r"wandb_v\d_\w{20,255}",
            service_token=_START + r"(?:[sr]k_live_|npm_|gsk_|r8_|dckr_pat_|dop_v1_)[A-Za-z0-9]{24,255}",
        ),
    ),
    Group(
        re.compile(
            r"-(?:(?<=sk-)|(?<=xox[a-z]-)|(?<=xapp-)|(?<=gl[a-z][a-z]t-)|(?<=glrt-)|(?<=nvapi-)|(?<=pplx-)|(?<=CSPX-)"
            r"|(?<=pypi-)|(?<=xai-)|(?<=local-))"
        ),
        _rules(
            anthropic_key=_START + r"sk-ant-[\w-]{16,255}",
            openai_key=_START + r"sk-(?=[\w-]{0,255}\d)[\w-]{20,255}",
            slack_token=_START + r"(?:xox[a-z]|xapp)-[\w-]{10,255}",
            gitlab_token=_START + r"gl[a-z]{2,5}-[\w-]{20,255}",
            wandb_key=_START + r"local-[0-9a-f]{40}" + _END,
            service_token=_START + r"(?:nvapi-|pplx-|xai-|GOCSPX-|pypi-AgE)[\w-]{24,255}",
        ),
    ),
    Group(
        re.compile(r"\.(?:(?<=ya29\.)|(?<=SG\.))"),
        _rules(
            google_key=_START + r"ya29\.[\w-]{20,2048}",
            service_token=_START + r"SG\.[\w-]{16,64}\.[\w-]{16,128}",
        ),
    ),
    Group(
        re.compile(r"@(?<=[\w.+%-]@)[A-Za-z0-9-]"),
        _rules(
            "email",
            email=r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}"
            r"(?:[a-z]{2}|[A-Z]{2}|com|org|net|edu|gov|mil|int|info|biz|dev|app|cloud|tech|email|xyz|online|local|internal"
            r"|corp|lan|intranet|science|systems|research|COM|ORG|NET|EDU|example|invalid|test)(?![\w(\[=-]|\.\w)",
        ),
    ),
)

# --- words -----------------------------------------------------------------------------------------
# A user or host with one of these names is only replaced in paths: as words they mean other things.
COMMON_WORDS = frozenset(
    set(_LABELS.split("|"))
    | {name.lower() for name in (*keyword.kwlist, *keyword.softkwlist, *dir(builtins))}
    | set(
        """
    admin administrator alpha anonymous app apps arg args array atom attention attn aws azure azureuser backend base
    batch beta bias bin block bot bottom box buffer build builder cache case cat center centos chunk ci circleci cloud
    cluster code coder colab colin compile compiler compute conda config container context conv copy core count cpu cuda
    cute data dataset debian debug default delta demo dev device devel developer dim docker dot dropout dtype dump dynamo
    ec2 ec2-user edge embed embedding engine env eval event example expert export false fast feature fedora file fill
    final flash float flow forward ftp full func function fuse fused games gather gelu gemm git github gitlab global gpu
    grad graph grid group guard guest half hash head heads hidden home hook host hub image index inductor info inner
    input int item iter jenkins job joint jovyan kernel key keys label lambda last layer lambda learn left lib linear
    linux list llama llm load local localhost lock log logger loss low machine mail main mark mask master matrix max mean
    mem memory meta min mini ml mlp mm mode model models module mul mutable name net network next node nobody node none
    norm notebook num nvidia object op open ops opt optim out outer output pad page param part pass patch path phase pip
    pixel pool port post pred proc process prod program proj project prompt proxy public py python pytorch qkv quant
    query queue qwen rand random range rank ray read redis relu repo research reshape residual result right role root
    rope row run runner runs sam sample scale scatter score script select self seq sequence serve server service session
    set shape share shared sigmoid silu size slice slurm softmax sort source spark split square src stack stage start
    state static step store stream stride student study sub sum sync sys system table tag target task team temp tensor
    term test tester testing tests text tile time tmp token top torch total trace train trainer transformer tree triton
    true tune tuple type ubuntu unit update user username users util val valid value var vector view virtual vision
    vllm vocab vscode warp web weight weights will work worker workspace world write www zero
    """.split()
    )
)
LOCAL_HOSTS = frozenset(
    {"localhost", "localhost.localdomain", "ip6-localhost", "127.0.0.1", "::1", "0.0.0.0"}
)  # noqa: S104 - a name to leave alone, nothing binds to it
USER_VARIABLES = frozenset(
    {
        "USER",
        "LOGNAME",
        "USERNAME",
        "SUDO_USER",
        "SLURM_JOB_USER",
        "SLURM_JOB_ACCOUNT",
        "JUPYTERHUB_USER",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_NAME",
    }
)
HOST_VARIABLE = re.compile(
    r"^(?:HOST|HOSTNAME|COMPUTERNAME|MASTER_ADDR|NODE_NAME|POD_NAME|SLURMD_NODENAME|SLURM_(?:JOB_|STEP_)?NODELIST"
    r"|SLURM_SUBMIT_HOST|SLURM_LAUNCH_NODE_IPADDR|SLURM_CLUSTER_NAME|PMI_HOST|PBS_O_HOST|\w+_HOST(?:NAME)?|\w+_(?:IP|ADDR))$"
)
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{1,62}(?:\.[A-Za-z0-9-]{1,63}){0,8}")

# --- addresses -------------------------------------------------------------------------------------
IPV4_PROBE = re.compile(r"\.\d{1,3}\.\d{1,3}\.\d")
IPV4 = re.compile(
    r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?!\.?[\w+]|-\w)"
)
# Four numbers after one of these are a version, such as cuDNN's 9.1.0.70.
VERSION_BEFORE = re.compile(
    r"(?i)(?:[=<>~!]=\s*|[=<>]\s*|[-_@v]|(?:version|driver|release|build|cuda|cudnn|cublas|cufft|curand|cusolver|cusparse|cusparselt"
    r"|cufile|cupti|nccl|nvrtc|nvjitlink|nvtx|nvshmem|runtime|mkl|rocm|hip|miopen|rccl|triton|torch|nvidia|cu1[123]|toolkit)"
    r"[\w.-]*[\"']?\s{0,40}[:=(]?\s{0,40}[\"'v]?)$"
)
# Standing alone, four numbers are an address if they start as private networks do, or too high for a version.
LIKELY_ADDRESS = re.compile(r"10\.|172\.(?:1[6-9]|2\d|3[01])\.|9\d\.|[12]\d\d\.")
IPV6_PROBE = re.compile(
    r":(?<=[0-9a-fA-F]:)(?::(?![A-Za-z_]{0,3}[g-zG-Z_])|[0-9a-fA-F]{1,4}:[0-9a-fA-F]{0,4}:)"
)
IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}"
    r"|(?:f[cd][0-9a-fA-F]{2}|fe[89ab][0-9a-fA-F]|2[0-9a-fA-F]{3})(?::[0-9a-fA-F]{1,4}){0,6}::(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,6})?)"
    r"(?![\w:])"
)
MAC = re.compile(r"(?<![\w:-])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:-])")
