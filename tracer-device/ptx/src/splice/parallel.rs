//! Processes kernels in parallel: a module may have thousands.

use std::num::NonZero;

/// Minimum number of kernels for a thread.
const A_THREAD: usize = 16;
const MAX_THREADS: usize = 16;

/// Calls `make` for each item, on several threads if there are many. The results, and the texts that `make`
/// appends to `out`, are in the order of the items. Returns the first error in this order.
pub(super) fn each<T: Sync, U: Send, E: Send>(
    items: &[T],
    out: &mut String,
    make: impl Fn(&T, &mut String) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MAX_THREADS).min(items.len() / A_THREAD);
    if threads < 2 {
        return items.iter().map(|item| make(item, out)).collect();
    }
    let make = &make;
    let all_of = |part: &[T]| {
        let mut text = String::new();
        let made: Result<Vec<U>, E> = part.iter().map(|item| make(item, &mut text)).collect();
        made.map(|made| (made, text))
    };
    let parts: Vec<Result<(Vec<U>, String), E>> = std::thread::scope(|scope| {
        let started: Vec<_> = items
            .chunks(items.len().div_ceil(threads))
            .map(|part| scope.spawn(move || all_of(part)))
            .collect();
        let joined = started.into_iter().map(|thread| thread.join());
        joined.map(|made| made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut all = Vec::with_capacity(items.len());
    for part in parts {
        let (mut made, text) = part?;
        all.append(&mut made);
        out.push_str(&text);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_the_first_error_counts() {
        let items: Vec<u32> = (0..1000).collect();
        let mut text = String::new();
        let double = |item: &u32, out: &mut String| {
            out.push_str(&format!("{item} "));
            Ok::<_, ()>(item * 2)
        };
        assert_eq!(each(&items, &mut text, double).map(|made| made[999]), Ok(1998));
        assert_eq!(text, items.iter().map(|item| format!("{item} ")).collect::<String>());
        let odd =
            |item: &u32, _: &mut String| if *item >= 300 && item % 2 == 1 { Err(*item) } else { Ok(*item) };
        assert_eq!(each(&items, &mut text, odd), Err(301));
    }
}
