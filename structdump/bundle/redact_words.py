"""Names that users and hosts have and that mean something else in code."""

from __future__ import annotations

import builtins
import keyword

_WORDS = """
    abc admin administrator alias alpha anonymous any app apple apps arg args arm array atom attention
    attn auto aws azure azureuser backend base batch bert best beta bias bin bit blend block bloom bot
    bottom box bridge buffer bug build builder cache case cat causal cell center centos chain chase
    check child chip chunk ci circleci claude clip cloud cls cluster code coder colab compile compiler
    compute conda config container context conv copy core count cpu crop cross cuda custom cute dan dash
    data dataset date day debian debug deep default delta demo dense depth dev devel developer device
    diff digit dim dist doc docker dot draft drop dropout dtype dual dump dynamo ear ec2 ec2-user echo
    edge email embed embedding end engine env eos epoch eval even event example expert export face fan
    fast feature fedora fft fig file fill filter final find first fit fix flag flash flip flow fold form
    forward frame free front ftp full fun func function fuse fused gain games gap gate gather gelu gemm
    gemma get git github gitlab global gold gpt gpu grad grant graph gray green grid group guard guest
    guide half han hand hard head heads heap hidden hill hit home hook host hot hub image index inductor
    info init inner input inv item iter jan jenkins jet jit job joint jovyan joy kernel key keys kit lab
    label lap last layer lead leaf learn left len level lib life lim line linear link linux lion llama
    llm load local localhost lock log logger logit loop lora loss love low mac machine mail main map
    mark mask master mat match matrix max may mean mel mem memory men merge meta mid min mini miss
    mistral mix mixtral ml mlp mod mode model models module moe moon more move mul mutable name nan neg
    net network new next nll nobody node noise norm notebook now num nvidia obs odd off old one op opal
    ops opt optim out outer output own owner pad page pair pan param parent part pass pat patch path
    peak peer pen phase pick pin pip pixel plan play plus pool port pos post power pre pred prefill
    prefix press prior probe proc process prod program proj project prompt proxy prune public pull push
    py python pytorch qkv quant query queue qwen rand random rank rate raw ray read real red redis
    reduce ref relu rem rep repo research reset reshape residual rest result right ring rms rob rock rod
    role roll root rope rose rot rotary round row rule run runner runs safe sage sam sample save scale
    scan scatter score script sea secret seed seg select self sense sep seq sequence serve server
    service session shape share shared shift show side sigmoid sign silu sin site six size sky slot
    slurm snap soft softmax sol son sort source span spark spin split spy square src stack stage stan
    star start state static std stem step stop store stream stride student study sub sum sun swap swish
    switch sync sys system tab table tag tail tanh tap tar target task tau team temp ten tensor term
    test tester testing tests text tie tile time tip tmp token tom ton tool top torch total touch trace
    train trainer trans transformer tree trim triton true try tune turn two unit unk update user
    username users util val valid value van var vec vector view virtual vision vllm vocab vscode wait
    walk wall warp wav wave way web weight weights white will win wind wing wise wood word work worker
    workspace world wrap write www yang year yolo you zero zip zoom
"""
# A user or host with one of these names is replaced in paths alone.
COMMON_WORDS = frozenset(
    {*_WORDS.split(), *(name.lower() for name in (*keyword.kwlist, *keyword.softkwlist, *dir(builtins)))}
)
