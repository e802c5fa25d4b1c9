//! Describes a parsed module as text, for snapshots.

use std::fmt::Write;

use warptrace_ptx::{
    Cfg, Declaration, Directive, Function, ItemKind, Module, Param, Statement, StatementKind, call_graph,
};

pub(crate) fn outline(module: &Module<'_>, statements: bool) -> String {
    let mut out = String::new();
    write(&mut out, module, statements).expect("strings take everything");
    out
}

fn write(out: &mut String, module: &Module<'_>, statements: bool) -> std::fmt::Result {
    let (major, minor) = module.version();
    writeln!(
        out,
        "version {major}.{minor}, targets {:?}, {:?} bits",
        module.targets(),
        module.address_size()
    )?;
    writeln!(out, "header ends at {}", module.position(module.header_end).line)?;
    writeln!(out, "dynamic shared: {:?}", module.dynamic_shared().collect::<Vec<_>>())?;
    let graph = call_graph(module);
    for item in &module.items {
        write!(out, "{}: ", module.position(item.span.start).line)?;
        match &item.kind {
            ItemKind::Function(index) => {
                write_function(out, &module.functions[*index], statements)?;
                writeln!(out, "    {:?}", graph.calls(*index))?;
            }
            ItemKind::Variable(declaration) => writeln!(out, "{}", declared(declaration))?,
            ItemKind::Comment => writeln!(out, "comment {}", short(item.span.text(module.text)))?,
            kind => writeln!(out, "{kind:?}")?,
        }
    }
    Ok(())
}

fn write_function(out: &mut String, function: &Function<'_>, statements: bool) -> std::fmt::Result {
    let params = |params: &[Param<'_>]| {
        let param = |param: &Param<'_>| {
            let align = param.align.map_or(String::new(), |align| format!(" align {align}"));
            format!("{:?}{align} {} {}{}", param.space, param.ty, param.name, param.dimensions.unwrap_or(""))
        };
        params.iter().map(param).collect::<Vec<_>>().join(", ")
    };
    let Function { kind, linkage, name, .. } = function;
    writeln!(
        out,
        "{kind:?} {linkage:?} ({}) {name} ({})",
        params(&function.returns),
        params(&function.params)
    )?;
    for directive in &function.directives {
        writeln!(out, "    {} {}", directive.name, directive.values)?;
    }
    let Some(body) = &function.body else { return Ok(()) };
    for statement in body.statements.iter().filter(|_| statements) {
        writeln!(out, "    {} {}", "| ".repeat(statement.depth as usize), describe(statement))?;
    }
    let cfg = match Cfg::new(body) {
        Ok(cfg) => cfg,
        Err(error) => return writeln!(out, "    {error}"),
    };
    for (index, block) in cfg.blocks().iter().enumerate() {
        let to: Vec<_> = block.successors.iter().map(|edge| edge.to).collect();
        let reached = if cfg.is_reachable(index) { "" } else { ", unreachable" };
        let depth = cfg.loop_depth(index);
        let instructions =
            body.statements[block.statements.clone()].iter().filter_map(Statement::instruction).count();
        writeln!(
            out,
            "    block {index}: {instructions} instructions, {:?} to {to:?}, loops {depth}{reached}",
            block.terminator
        )?;
    }
    Ok(())
}

fn describe(statement: &Statement<'_>) -> String {
    match &statement.kind {
        StatementKind::Instruction(instruction) => {
            let guard = instruction.guard.map_or(String::new(), |guard| {
                format!("@{}{} ", if guard.negated { "!" } else { "" }, guard.predicate)
            });
            let operands: Vec<_> = instruction.operands.iter().map(|operand| operand.text).collect();
            let callee = instruction.callee().map_or(String::new(), |callee| format!(" calls {callee}"));
            let indirect = if instruction.is_indirect_call() { " calls indirectly" } else { "" };
            format!("{guard}{} {operands:?}{callee}{indirect}", instruction.opcode)
        }
        StatementKind::Directive(Directive::Registers(declaration) | Directive::Variable(declaration)) => {
            declared(declaration)
        }
        StatementKind::Comment(text) => format!("comment {}", short(text)),
        kind => format!("{kind:?}"),
    }
}

fn declared(declaration: &Declaration<'_>) -> String {
    let names = declaration.names.iter().map(|declared| {
        let count = declared.count.map_or(String::new(), |count| format!("<{count}>"));
        let value = if declared.initialized { " = ..." } else { "" };
        format!("{}{count}{}{value}", declared.name, declared.dimensions.unwrap_or(""))
    });
    let align = declaration.align.map_or(String::new(), |align| format!(" align {align}"));
    let names = names.collect::<Vec<_>>().join(", ");
    format!("{:?} {:?}{align} {} {names}", declaration.linkage, declaration.space, declaration.ty)
}

fn short(text: &str) -> String {
    format!("{:?}", text.chars().take(60).collect::<String>())
}
