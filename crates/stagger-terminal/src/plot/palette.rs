use ratatui_core::style::Color;

/// The color of a series, with a dash pattern and a mark that distinguish it without color.
///
/// The colors are those of Okabe and Ito, "Color Universal Design", 2008, which are distinguishable with any kind of
/// color vision. If a color has too little contrast on a page, its lightness is changed and its hue kept. Yellow is left
/// out: no lightness has enough contrast on white.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hue {
    pub class: &'static str,
    pub on_light: &'static str,
    pub on_dark: &'static str,
    /// The color in a terminal, from the user's palette.
    pub in_terminal: Color,
    /// The dash pattern of lines, as lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static str,
    /// The letter that marks points in a terminal.
    pub mark: char,
}

impl Hue {
    pub const INK: Self = Self::new("ink", ["#1c2128", "#e6edf3"], Color::Reset, "", 'o');
    pub const VERMILION: Self = Self::new("vermilion", ["#d55e00", "#f07f2e"], Color::Red, "7 3", 'b');
    pub const SKY: Self = Self::new("sky", ["#3a9fd6", "#8fd0f5"], Color::Cyan, "12 4", 'f');

    /// All hues, in the order in which they are assigned to series.
    pub const ALL: [Self; 7] = [
        Self::INK,
        Self::new("blue", ["#0072b2", "#4aa8e0"], Color::LightBlue, "", 'a'),
        Self::VERMILION,
        Self::new("green", ["#009e73", "#1fbf8f"], Color::Green, "2 3", 'c'),
        Self::new("purple", ["#b8558f", "#de94bf"], Color::Magenta, "9 3 2 3", 'd'),
        Self::new("orange", ["#c98500", "#e69f00"], Color::Yellow, "4 2", 'e'),
        Self::SKY,
    ];

    const fn new(
        class: &'static str,
        [on_light, on_dark]: [&'static str; 2],
        in_terminal: Color,
        dash: &'static str,
        mark: char,
    ) -> Self {
        Self { class, on_light, on_dark, in_terminal, dash, mark }
    }

    /// Returns the hue with solid lines.
    pub fn solid(self) -> Self {
        Self { dash: "", ..self }
    }

    /// Returns the hue of series `n`, from 0; hues repeat after six.
    pub fn nth(n: usize) -> Self {
        let colored = &Self::ALL[1..];
        colored[n % colored.len()]
    }
}
