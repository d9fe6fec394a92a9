use super::find::FrontierEntry;
use stagger_terminal::plot::svg::HeatMap;
use stagger_terminal::plot::{RenderOptions, paragraph};

/// Returns the map for a terminal: a row for each value of the second number, the largest on top.
pub(super) fn map(entry: &FrontierEntry, options: RenderOptions) -> String {
    let [across, up] = &entry.labels;
    let gutter = up.iter().map(String::len).max().unwrap_or(0);
    let width = if usize::from(options.columns) > gutter + 2 + 2 * across.len() { 2 } else { 1 };
    let mut out = paragraph(&caption(entry), "  ", options) + "\n";
    out.push_str(&format!("{}\n", entry.up));
    let [none, some, all] = options.glyphs.pick(['·', '▒', '█'], ['.', '+', '#']);
    for (label, cells) in up.iter().zip(&entry.down).rev() {
        let glyph = |share: &f64| {
            if *share <= 0.0 {
                none
            } else if *share >= 1.0 {
                all
            } else {
                some
            }
        };
        let cells: String = cells.iter().flat_map(|share| core::iter::repeat_n(glyph(share), width)).collect();
        out.push_str(&format!("{label:>gutter$}  {cells}\n"));
    }
    let (first, last) = (across.first().cloned().unwrap_or_default(), across.last().cloned().unwrap_or_default());
    let room = (width * across.len()).saturating_sub(first.len());
    out.push_str(&format!("{:gutter$}  {first}{last:>room$}\n", ""));
    let legend =
        format!("{none} is up at the end with every seed, {some} with some of {}, {all} with none", entry.seeds);
    out + &paragraph(&legend, "  ", options)
}

/// Says what is in the map.
pub(super) fn caption(entry: &FrontierEntry) -> String {
    format!("What the system survives: {} across, {} up", entry.across, entry.up)
}

/// Returns the picture of the map.
pub(super) fn picture(entry: &FrontierEntry) -> HeatMap {
    let [across, up] = entry.labels.clone();
    let cells: Vec<_> = entry.down.iter().flatten().collect();
    let down = cells.iter().filter(|share| ***share >= 0.5).count();
    HeatMap {
        title: caption(entry),
        description: format!("The system stays down in {down} of {} cells.", cells.len()),
        axes: [entry.across.clone(), entry.up.clone()],
        across,
        up,
        cells: entry.down.clone(),
        legend: ["recovers".to_owned(), "stays down".to_owned()],
    }
}
