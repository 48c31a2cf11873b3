// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metres to pixels.

/// Around all positions, px: a name fits beside the outermost one.
const MARGIN: f64 = 44.0;
/// Height of the axis of time below the map.
const AXIS: f64 = 44.0;
const LOWEST: f64 = 110.0;
const HIGHEST: f64 = 480.0;

/// The same in both directions: a range is a circle.
pub struct Scale {
    px_per_m: f64,
    /// The west and the north end, m.
    west: f64,
    north: f64,
    size_m: [f64; 2],
    /// From the left and from above, px.
    left: f64,
    top: f64,
    /// Height of the whole picture, px.
    pub height: f64,
}

impl Scale {
    /// Creates the scale of a picture of this width; `None`: there are no positions.
    pub fn of(
        positions: impl Iterator<Item = [f64; 2]>,
        width: f64,
        has_axis: bool,
    ) -> Option<Self> {
        let (mut least, mut most) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for position in positions {
            for axis in [0, 1] {
                least[axis] = least[axis].min(position[axis]);
                most[axis] = most[axis].max(position[axis]);
            }
        }
        let size_m = [most[0] - least[0], most[1] - least[1]];
        if !size_m.iter().all(|m| m.is_finite()) {
            return None;
        }
        let margin = MARGIN * (width / 720.0).max(0.5);
        let room = [width - 2.0 * margin, HIGHEST - 2.0 * margin];
        let fits = |axis: usize| room[axis] / size_m[axis].max(1e-3);
        // A single position needs no scale.
        let px_per_m = match size_m == [0.0; 2] {
            true => 1.0,
            false => fits(0).min(fits(1)),
        };
        let height_px = size_m[1] * px_per_m;
        let inner = (height_px + 2.0 * margin).max(LOWEST * width / 720.0);
        Some(Self {
            px_per_m,
            west: least[0],
            north: most[1],
            size_m,
            left: (width - size_m[0] * px_per_m) / 2.0,
            top: (inner - height_px) / 2.0,
            height: (inner + if has_axis { AXIS } else { 0.0 }).round(),
        })
    }

    /// Returns the pixel of a position, with north at the top.
    pub fn px(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [
            self.left + (x - self.west) * self.px_per_m,
            self.top + (self.north - y) * self.px_per_m,
        ]
        .map(tenth)
    }

    pub fn length_px(&self, m: f64) -> f64 {
        tenth(m * self.px_per_m)
    }

    /// Returns width and height of the area that all positions cover, m.
    pub fn size_m(&self) -> [f64; 2] {
        self.size_m
    }
}

/// Rounds to a tenth of a pixel.
fn tenth(px: f64) -> f64 {
    (px * 10.0).round() / 10.0 + 0.0
}
