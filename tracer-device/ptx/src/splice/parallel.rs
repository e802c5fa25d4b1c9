//! Several kernels at a time: a module may have thousands.

use std::num::NonZero;

/// Kernels that are worth a thread.
const A_THREAD: usize = 16;
const MAX_THREADS: usize = 16;

/// Calls `make` for each item, on several threads if there are many; the results are in the order of the
/// items.
///
/// # Errors
/// The first one in that order.
pub(super) fn each<T: Sync, U: Send, E: Send>(
    items: &[T],
    make: impl Fn(&T) -> Result<U, E> + Sync,
) -> Result<Vec<U>, E> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MAX_THREADS).min(items.len() / A_THREAD);
    if threads < 2 {
        return items.iter().map(make).collect();
    }
    let make = &make;
    let parts: Vec<Result<Vec<U>, E>> = std::thread::scope(|scope| {
        let started: Vec<_> = items
            .chunks(items.len().div_ceil(threads))
            .map(|part| scope.spawn(move || part.iter().map(make).collect()))
            .collect();
        let joined = started.into_iter().map(|thread| thread.join());
        joined.map(|made| made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut all = Vec::with_capacity(items.len());
    for part in parts {
        all.append(&mut part?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_order_and_the_first_error_counts() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(each(&items, |item| Ok::<_, ()>(item * 2)).map(|made| made[999]), Ok(1998));
        let odd = |item: &u32| if *item >= 300 && item % 2 == 1 { Err(*item) } else { Ok(*item) };
        assert_eq!(each(&items, odd), Err(301));
    }
}
