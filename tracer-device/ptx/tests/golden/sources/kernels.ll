; A switch, an indirect call and inline assembly, for llc: see README.md beside this file.
target triple = "nvptx64-nvidia-cuda"

@table = addrspace(1) global [2 x i32 (i32)*] [i32 (i32)* @half, i32 (i32)* @double]

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define i32 @half(i32 %x) noinline {
  %y = lshr i32 %x, 1
  ret i32 %y
}

define i32 @double(i32 %x) noinline {
  %y = shl i32 %x, 1
  ret i32 %y
}

define ptx_kernel void @choose(i32 addrspace(1)* %out, i32 %kind) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, i32 addrspace(1)* %out, i32 %tid
  %value = load i32, i32 addrspace(1)* %at
  switch i32 %kind, label %other [
    i32 0, label %zero
    i32 1, label %one
    i32 7, label %seven
  ]
zero:
  call void asm sideeffect "// warptrace.loc 1", ""()
  br label %end
one:
  call void asm sideeffect "// warptrace.loc 2", ""()
  %plus = add i32 %value, 5
  br label %end
seven:
  %bit = and i32 %tid, 1
  %entry1 = getelementptr [2 x i32 (i32)*], [2 x i32 (i32)*] addrspace(1)* @table, i32 0, i32 %bit
  %function = load i32 (i32)*, i32 (i32)* addrspace(1)* %entry1
  %called = call i32 %function(i32 %value)
  br label %end
other:
  %again = call i32 @half(i32 %value)
  br label %end
end:
  %result = phi i32 [0, %zero], [%plus, %one], [%called, %seven], [%again, %other]
  store i32 %result, i32 addrspace(1)* %at
  ret void
}
