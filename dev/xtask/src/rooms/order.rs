//! The order of rooms with the fewest imports against it.

/// The most rooms of one cycle whose order is computed: time and memory double with each.
const MOST_IN_CYCLE: usize = 16;

/// Returns the rooms from the bottom up, so that as few imports as possible name a room above the importing one.
/// `imports[a][b]` is the number of imports of `b` in `a`. Of two such orders it is the one with the lower number first.
///
/// # Errors
///
/// Returns the rooms of a cycle that is too long to be ordered.
pub(crate) fn fewest_against(imports: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order = Vec::new();
    for cycle in cycles(imports) {
        if cycle.len() > MOST_IN_CYCLE {
            return Err(cycle);
        }
        order.extend(order_of_cycle(&cycle, imports));
    }
    Ok(order)
}

/// Returns the sets of rooms that reach each other, from the bottom up. Only within one of them can an import be against
/// every order.
fn cycles(imports: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let rooms = 0..imports.len();
    let mut reaches: Vec<Vec<bool>> =
        rooms.clone().map(|a| rooms.clone().map(|b| a == b || imports[a][b] > 0).collect()).collect();
    for via in rooms.clone() {
        for a in rooms.clone() {
            for b in rooms.clone() {
                reaches[a][b] |= reaches[a][via] && reaches[via][b];
            }
        }
    }
    let mut left: Vec<usize> = rooms.collect();
    let mut cycles = Vec::new();
    // A room that reaches the fewest others is at the bottom of what is left.
    while let Some(&lowest) = left.iter().min_by_key(|&&a| left.iter().filter(|&&b| reaches[a][b]).count()) {
        let (cycle, rest) = left.into_iter().partition(|&b| reaches[lowest][b] && reaches[b][lowest]);
        cycles.push(cycle);
        left = rest;
    }
    cycles
}

/// Tries every set of rooms as the lower part of the order, smaller sets first.
fn order_of_cycle(cycle: &[usize], imports: &[Vec<usize>]) -> Vec<usize> {
    let all = (1_usize << cycle.len()) - 1;
    // For each set: the fewest imports against an order of it, and its top room in that order.
    let mut best = vec![(usize::MAX, 0); all + 1];
    best[0] = (0, 0);
    for lower in 0..all {
        for (number, &room) in cycle.iter().enumerate().filter(|(number, _)| lower & (1 << number) == 0) {
            let with = lower | (1 << number);
            let above = cycle.iter().enumerate().filter(|(other, _)| with & (1 << other) == 0);
            let against = best[lower].0 + above.map(|(_, &other)| imports[room][other]).sum::<usize>();
            if against < best[with].0 {
                best[with] = (against, number);
            }
        }
    }
    let mut order = Vec::new();
    let mut set = all;
    while set != 0 {
        let top = best[set].1;
        order.push(cycle[top]);
        set &= !(1 << top);
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the table of these imports: `(from, to, count)`.
    fn table(rooms: usize, imports: &[(usize, usize, usize)]) -> Vec<Vec<usize>> {
        let mut table = vec![vec![0; rooms]; rooms];
        for &(from, to, count) in imports {
            table[from][to] = count;
        }
        table
    }

    fn against(order: &[usize], imports: &[Vec<usize>]) -> usize {
        let place = |room| order.iter().position(|&other| other == room).unwrap();
        let rooms = || 0..imports.len();
        let pairs = rooms().flat_map(|a| rooms().map(move |b| (a, b)));
        pairs.filter(|&(a, b)| place(b) > place(a)).map(|(a, b)| imports[a][b]).sum()
    }

    #[test]
    fn without_a_cycle_no_import_is_against_the_order() {
        let imports = table(4, &[(0, 1, 3), (1, 2, 1), (0, 3, 1), (3, 2, 5)]);
        let order = fewest_against(&imports).unwrap();
        assert_eq!((against(&order, &imports), order), (0, vec![2, 1, 3, 0]));
    }

    #[test]
    fn the_lightest_import_of_a_cycle_is_against_the_order() {
        let imports = table(3, &[(0, 1, 2), (1, 2, 3), (2, 0, 1)]);
        assert_eq!(fewest_against(&imports), Ok(vec![2, 1, 0]));
        let imports = table(3, &[(0, 1, 2), (1, 2, 1), (2, 0, 3)]);
        assert_eq!(fewest_against(&imports), Ok(vec![1, 0, 2]));
    }

    #[test]
    fn no_permutation_has_fewer_imports_against_it() {
        // Pseudo-random tables of five rooms, compared with all 120 orders.
        let mut bits = 1_u32;
        for _ in 0..50 {
            let mut imports = table(5, &[]);
            for (from, to) in (0..5).flat_map(|from| (0..5).map(move |to| (from, to))).filter(|(from, to)| from != to) {
                bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                imports[from][to] = (bits >> 29) as usize;
            }
            let fewest = permutations(5).iter().map(|order| against(order, &imports)).min().unwrap();
            assert_eq!(against(&fewest_against(&imports).unwrap(), &imports), fewest, "{imports:?}");
        }
    }

    fn permutations(rooms: usize) -> Vec<Vec<usize>> {
        (0..rooms).fold(vec![Vec::new()], |orders, room| {
            let insert = |order: &Vec<usize>| {
                (0..=order.len()).map(|at| [&order[..at], &[room], &order[at..]].concat()).collect::<Vec<_>>()
            };
            orders.iter().flat_map(insert).collect()
        })
    }

    #[test]
    fn a_cycle_too_long_to_order_is_an_error() {
        let ring: Vec<_> = (0..17).map(|room| (room, (room + 1) % 17, 1)).collect();
        assert_eq!(fewest_against(&table(17, &ring)), Err((0..17).collect()));
        assert_eq!(fewest_against(&table(40, &[])).map(|order| order.len()), Ok(40));
    }
}
