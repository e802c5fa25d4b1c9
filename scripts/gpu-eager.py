"""A training step of eager PyTorch, 100 times: how long it takes alone, and under `warptrace run`."""
import time, torch
torch.manual_seed(1)
m = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048), torch.nn.Linear(2048, 512)).cuda()
o = torch.optim.AdamW(m.parameters(), 1e-3)
x = torch.randn(256, 512, device="cuda")
def step():
    o.zero_grad(); l = (m(x) - x).square().mean(); l.backward(); o.step(); return l
for _ in range(3): step()
torch.cuda.synchronize(); t = time.time()
for _ in range(100): l = step()
torch.cuda.synchronize()
print(f"loss {l.item():.6f} {(time.time() - t) * 10:.3f} ms a step")
