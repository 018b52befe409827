import sys, torch, torch.nn as nn
case = sys.argv[1]
torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self, d=16, brk=False):
        super().__init__()
        self.a = nn.Linear(d, d)
        self.n = nn.LayerNorm(d)
        self.brk = brk

    def forward(self, x):
        y = self.n(self.a(x))
        if self.brk:
            print("broken here")
        return torch.relu(y) + x

if case == "train":
    m = nn.Sequential(Block(), Block(brk=True))
    c = torch.compile(m)
    for n in (4, 4, 6):
        c(torch.randn(n, 16)).sum().backward()
elif case == "fail":
    def bad(gm, inputs):
        raise RuntimeError("backend fell over for alex")
    f = torch.compile(lambda x: x.sin() + 1, backend=bad)
    try:
        f(torch.randn(4))
    except Exception as e:
        print(type(e))
elif case == "fullgraph":
    m = torch.compile(Block(brk=True), fullgraph=True)
    try:
        m(torch.randn(4, 16))
    except Exception as e:
        print(type(e))
elif case == "suppress":
    import torch._dynamo
    torch._dynamo.config.suppress_errors = True
    def bad(gm, inputs):
        raise RuntimeError("backend fell over for alex")
    f = torch.compile(lambda x: x.sin() + 1, backend=bad)
    print(f(torch.randn(4)).shape)
elif case == "ca":
    import torch._dynamo
    torch._dynamo.config.compiled_autograd = True
    m = Block()
    @torch.compile
    def step(x):
        loss = m(x).sum()
        loss.backward()
        return loss
    step(torch.randn(4, 16))
elif case == "export":
    m = Block().eval()
    ep = torch.export.export(m, (torch.randn(4, 16),), strict=False)
    ep = torch.export.export(m, (torch.randn(4, 16),), strict=True)
    print(ep.graph_signature.user_inputs)
elif case == "aoti":
    with torch.no_grad():
        for _ in range(2):
            m = Block().eval()
            ep = torch.export.export(m, (torch.randn(4, 16),))
            print(torch._inductor.aoti_compile_and_package(ep))
elif case == "aotcompile":
    with torch.no_grad():
        m = Block().eval()
        c = torch.compile(m.forward, fullgraph=True).aot_compile(((torch.randn(4, 16),), {}))
        print(c(m, torch.randn(4,16)).shape)
elif case == "standalone":
    from torch.fx.experimental.proxy_tensor import make_fx
    def f(x): return x.sin() + 1
    x = torch.randn(4)
    gm = make_fx(f)(x)
    c = torch._inductor.standalone_compile(gm, [x], dynamic_shapes="from_example_inputs")
    print(c(x))
    c = torch._inductor.compile(gm, [x])
    print(c(x))
elif case == "two":
    a, b = torch.compile(Block()), torch.compile(nn.Sequential(Block(8), nn.GELU()))
    x, y = a(torch.randn(4, 16)), b(torch.randn(4, 8))
    x.sum().backward()
    y.sum().backward()
elif case == "dynamic":
    f = torch.compile(lambda x, k: x[:k].cos() * k, dynamic=True)
    f(torch.randn(8), 3); f(torch.randn(9), 4)
    g = torch.compile(lambda x: x[x.sum().int().item() % 3])
    g(torch.randn(8))
    import torch._dynamo
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        h = torch.compile(lambda x: torch.zeros(x.sum().long().item()) + 1)
        h(torch.ones(8))
elif case == "ddp":
    import os, torch.distributed as dist
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29123")
    dist.init_process_group("gloo", rank=0, world_size=1)
    class Big(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(4)])
        def forward(self, x):
            for l in self.l: x = torch.relu(l(x))
            return x
    m = nn.parallel.DistributedDataParallel(Big(), bucket_cap_mb=5)
    c = torch.compile(m)
    c(torch.randn(4, 1024)).sum().backward()
    dist.destroy_process_group()
elif case == "reset":
    f = torch.compile(lambda x: x.cos() + 1)
    f(torch.randn(3))
    f(torch.randn(4, 5))
    torch._dynamo.reset()
    g = torch.compile(lambda x: x.sin() + 2)
    g(torch.randn(3, requires_grad=True)).sum().backward()
    g(torch.randn(4, 5))
    with torch.no_grad():
        for n in (2, 3):
            ep = torch.export.export(nn.Linear(n, n), (torch.randn(1, n),), strict=True)
            torch._inductor.aoti_compile_and_package(ep)
    h = torch.compile(lambda x: x.tan() + 3)
    h(torch.randn(3))
elif case == "skip":
    def inner(x):
        print("no")
        return x + 1
    class Ctx:
        def __enter__(self): print("enter")
        def __exit__(self, *a): pass
    @torch.compile
    def f(x):
        with Ctx():
            x = x + 1
            torch._dynamo.graph_break()
            x = x * 2
        return x
    f(torch.randn(3))
    @torch.compile
    def g(x):
        for i in range(2):
            try:
                x = x.sin()
                print("broken")
            finally:
                x = x + 1
        return x
    g(torch.randn(3))
    @torch.compile(backend="eager")
    def h(x):
        return 1
    h(torch.randn(3))
elif case == "bwdfail":
    import torch._inductor.config as ic
    a = torch.compile(Block())
    y = a(torch.randn(4, 16))
    def boom(g): raise ValueError("custom pass of alex failed")
    ic.post_grad_custom_post_pass = boom
    try: y.sum().backward()
    except Exception as e: print(type(e))
elif case == "region":
    from torch.compiler import nested_compile_region
    @nested_compile_region
    def gn(x, w): return torch.relu(x @ w)
    @torch.compile(fullgraph=True)
    def f(x, w):
        for _ in range(3): x = gn(x, w)
        return x.sum()
    w = torch.randn(8, 8, requires_grad=True)
    f(torch.randn(8, 8), w).backward()
    m = nn.Sequential(Block(), Block())
    for b in m: b.compile()
    m(torch.randn(4, 16)).sum().backward()
elif case == "threads":
    import threading
    fs = [torch.compile(lambda x, k=k: (x + k).sin()) for k in range(2)]
    ts = [threading.Thread(target=f, args=(torch.randn(3),)) for f in fs]
    [t.start() for t in ts]; [t.join() for t in ts]
elif case == "limit":
    import torch._dynamo
    torch._dynamo.config.recompile_limit = 2
    f = torch.compile(lambda x, k: x * k)
    for k in ("a",1, 2.0, None, True):
        try: f(torch.randn(3), k)
        except Exception as e: print(type(e).__name__)
elif case == "autotune":
    f = torch.compile(lambda a, b: torch.relu(a @ b), mode="max-autotune")
    with torch.no_grad(): f(torch.randn(64, 64), torch.randn(64, 64))
elif case == "freeze":
    import torch._inductor.config as ic
    ic.freezing = True
    m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    with torch.no_grad(): torch.compile(m)(torch.randn(1, 3, 8, 8))
elif case == "indfail":
    import torch._inductor.config as ic
    def boom(g): raise ValueError("custom pass of alex failed")
    ic.post_grad_custom_post_pass = boom
    try: torch.compile(Block())(torch.randn(4, 16))
    except Exception as e: print(type(e))
