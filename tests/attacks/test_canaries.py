"""Forty distinct values that must not get out, planted wherever a string comes from."""

from __future__ import annotations

import json
import traceback

import pytest
from redact_samples import redactor

from structdump.bundle.redact import Redactor

PEM = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----"


def _raised(path: str, message: str) -> str:
    try:
        exec(compile(f"raise ValueError({message!r})", path, "exec"), {})
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


# Each canary, and how it is planted: method of the redactor, and what is passed to it.
PLANTED = {
    # in the environment
    "canary01env": lambda c: ("env", {"HF_TOKEN": c}),
    "canary02env": lambda c: ("env", {"MY_SECRET_SAUCE": c}),
    "canary03env": lambda c: ("env", {"DB_PASSWORD": c}),
    "canary04env": lambda c: ("env", {"AWS_SECRET_ACCESS_KEY": c}),
    "canary05env": lambda c: ("env", {"LOGNAME": c}),
    "canary06env": lambda c: ("env", {"SLURM_JOB_NODELIST": c}),
    "canary07env": lambda c: ("env", {"PYTHONPATH": f"/home/alex/{c}/lib:/usr/lib"}),
    "canary08env": lambda c: ("env", {"HTTPS_PROXY": f"http://sam:{c}@proxy:3128"}),
    "canary09env": lambda c: ("env", {"PWD": f"/workspace/{c}"}),
    # on the command line
    "canary10argv": lambda c: ("argv", ["train.py", "--api-key", c]),
    "canary11argv": lambda c: ("argv", ["train.py", f"--hub-token={c}"]),
    "canary12argv": lambda c: ("argv", [f"{c}/train.py"]),
    "canary13argv": lambda c: ("argv", [f"/home/alex/{c}/train.py", "--lr", "1"]),
    "canary14argv": lambda c: ("argv", ["curl", "-H", f"Authorization: Bearer {c}"]),
    "canary15argv": lambda c: ("argv", ["env", f"WANDB_API_KEY={c}"]),
    "canary16argv": lambda c: ("value", {"argv": ["train.py", "--password", c]}),
    # paths
    "canary17path": lambda c: ("text", f"# File: /home/alex/{c}/model.py:3 in forward, code: x = a / b"),
    "canary18path": lambda c: ("text", f"/home/alex/{c}"),
    "canary19path": lambda c: ("text", f"/mnt/share/{c}/a/b.py"),
    "canary20path": lambda c: ("text", f'File "/home/alex/My {c}/x.py", line 3'),
    "canary21path": lambda c: ("text", f"/tmp/torchinductor_{c}/ab/cab.py"),
    "canary22path": lambda c: ("text", f"file:///srv/{c}/x%20y.py"),
    "canary23path": lambda c: ("text", f"%2Fhome%2Falex%2F{c}%2Fx.py"),
    "canary24path": lambda c: ("text", f"C:\\Users\\{c}\\x.py"),
    "canary25path": lambda c: ("value", {"file": f"{c}/train.py"}),
    "canary26path": lambda c: ("value", {f"/data/{c}/x.py": 1}),
    # exceptions
    "canary27error": lambda c: ("text", _raised(f"/home/alex/{c}/x.py", "boom")),
    "canary28error": lambda c: ("text", _raised("x.py", f"cannot open '/home/alex/{c}'")),
    "canary29error": lambda c: ("text", _raised("x.py", f"login failed: password='{c}'")),
    "canary30error": lambda c: ("text", _raised("x.py", f"401 for https://user:{c}@example.com/repo.git")),
    # code and comments
    "canary31code": lambda c: ("text", f"# ask {c}@example.com before changing this"),
    "canary32code": lambda c: ("text", f"client = Client(api_key='{c}')"),
    "canary33code": lambda c: ("text", f"x = 1  # TODO({c}) on {c}'s box"),
    "canary34code": lambda c: ("text", PEM.format(c)),
    # configuration, JSON, URLs
    "canary35json": lambda c: ("text", json.dumps({"auth": {"access_token": c}})),
    "canary36json": lambda c: ("text", json.dumps(json.dumps({"password": c}))),
    "canary37json": lambda c: ("value", {"config": {"wandb": {"client_secret": c}}}),
    "canary38url1": lambda c: (
        "text",
        f"https://x.s3.amazonaws.com/y?X-Amz-Signature={c * 2}&X-Amz-Expires=9",
    ),
    "canary39url2": lambda c: ("value", {"url": f"https://x/?page=1&token={c}"}),
    "canary40host": lambda c: ("text", f"rank 3 on {c}.cluster.example.com:29500"),
}


@pytest.mark.parametrize("canary", PLANTED)
def test_no_canary_gets_out(canary):
    method, planted = PLANTED[canary](canary)
    assert canary in json.dumps(planted)
    one = redactor(user="canary33code", hosts=["node1.cluster.example.com"])
    result = getattr(one, method)(planted)
    assert canary not in json.dumps(result)
    assert one.counts
    # What is redacted already stays as it is, also for another redactor.
    assert getattr(one, method)(result) == result
    assert getattr(redactor(), method)(result) == result


def test_forty_of_them():
    assert len(PLANTED) == 40


@pytest.mark.parametrize("canary", PLANTED)
def test_the_canaries_are_caught_by_redaction_alone(canary):
    method, planted = PLANTED[canary](canary)
    assert canary in json.dumps(getattr(Redactor(enabled=False), method)(planted))


def test_all_of_them_in_one_text():
    texts = [planted for method, planted in (plant(c) for c, plant in PLANTED.items()) if method == "text"]
    one = redactor(user="canary33code", hosts=["node1.cluster.example.com"])
    joined = "\n".join(texts)
    assert joined.count("canary") >= 20
    assert "canary" not in one.text(joined)
    for escape in (repr, json.dumps):
        assert "canary" not in one.text(escape(joined))
        assert "canary" not in one.text(escape(escape(joined)))
    assert "canary" not in json.dumps(one.value({"a": [{"b": joined}]}))
