// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of rates in the shapes of public data sets and common tools; figures are invented.

use emud::convert::import::{Header, Imported, Layout, Moment, rate_log};
use emud::profile::{Profile, TextError, TraceSource};
use proptest::prelude::*;
use support::chance::same_cases;

use super::parse;

/// `time[:unit]`, `time:unit:for` for durations, `every:MS`.
fn layout(time: &str, rate: &str, unit: &str) -> Layout {
    let mut words = time.split(':');
    let column = words.next().unwrap().to_owned();
    let time_unit = words.next().unwrap_or("s").to_owned();
    let (time, time_unit) = match (column.as_str(), words.next()) {
        ("every", _) => {
            let ms: u64 = time_unit.parse().unwrap();
            (Moment::Every(ms * 1_000_000), "s".to_owned())
        }
        (_, Some(_)) => (Moment::Lasts(column), time_unit),
        (_, None) => (Moment::At(column), time_unit),
    };
    Layout {
        time,
        time_unit,
        rate: rate.to_owned(),
        unit: unit.to_owned(),
        delay: None,
        delay_unit: "ms".to_owned(),
        only: None,
    }
}

fn import(log: &str, layout: &Layout) -> Imported {
    rate_log(log, "log", layout, Header::Down, None).unwrap_or_else(|e| panic!("{log}\n{e}"))
}

/// Times in ms and rates in kbit/s; the total duration in ms.
fn read(imported: &Imported) -> (Vec<(f64, f64)>, f64) {
    let profile = parse(&imported.toml);
    let Some(TraceSource::Rows { rows, period_ns }) = profile.down.trace.map(|t| t.source) else {
        panic!("{}", imported.toml)
    };
    let row = |at_ns: u64, rate: Option<u64>| (at_ns as f64 / 1e6, rate.unwrap() as f64 / 1e3);
    let rows = rows.iter().map(|r| row(r.at_ns, r.rate)).collect();
    (rows, period_ns as f64 / 1e6)
}

struct Shape {
    name: &'static str,
    log: &'static str,
    time: &'static str,
    rate: &'static str,
    unit: &'static str,
    /// ms, kbit/s.
    rows: &'static [(f64, f64)],
    period_ms: f64,
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape { name: "Pensieve, Norway: s and Mbit/s, a tab between",
        log: "0.0\t1.5\n0.5\t0.25\n1.5\t3\n", time: "1", rate: "2", unit: "Mbit",
        rows: &[(0.0, 1500.0), (500.0, 250.0), (1500.0, 3000.0)], period_ms: 2500.0 },
    Shape { name: "Pensieve, FCC: blanks",
        log: "  5.0 1.5\n10.0   2.5\n", time: "1", rate: "2", unit: "Mbps",
        rows: &[(0.0, 1500.0), (5000.0, 2500.0)], period_ms: 10_000.0 },
    Shape { name: "Oboe: ms and kbit/s",
        log: "7.0 4646.67\n320.0 4646.67\n408.0 4696.75\n", time: "1:ms", rate: "2", unit: "kbit",
        rows: &[(0.0, 4646.67), (313.0, 4646.67), (401.0, 4696.75)], period_ms: 489.0 },
    Shape { name: "Riiser, HSDPA: Unix s, ms, latitude, longitude, bytes, ms since the row before",
        log: "1289406399 549 59.85 10.78 125000 1000\n1289406400 1549 59.85 10.78 62500 500\n",
        time: "6:ms:for", rate: "5", unit: "B",
        rows: &[(0.0, 1000.0), (1000.0, 1000.0)], period_ms: 1500.0 },
    Shape { name: "Riiser by the clock",
        log: "1289406399 549 59.85 10.78 125000 1000\n1289406400 1549 59.85 10.78 62500 1000\n1289406401 2049 59.85 10.78 125000 500\n",
        time: "2:ms", rate: "5", unit: "B",
        rows: &[(0.0, 500.0), (1000.0, 2000.0)], period_ms: 1500.0 },
    Shape { name: "Ghent, 4G: Unix ms, ms, latitude, longitude, bytes, ms",
        log: "1453121790686 519 51.03 3.73 1250000 1000\n1453121791686 1519 51.03 3.73 2500000 1000\n",
        time: "6:ms:for", rate: "5", unit: "bytes",
        rows: &[(0.0, 10_000.0), (1000.0, 20_000.0)], period_ms: 2000.0 },
    Shape { name: "Sabre: JSON",
        log: "[ {\"duration_ms\": 1000, \"bandwidth_kbps\": 2500, \"latency_ms\": 100},\n  {\"duration_ms\": 3000, \"bandwidth_kbps\": 500, \"latency_ms\": 100} ]",
        time: "duration_ms:ms:for", rate: "bandwidth_kbps", unit: "kbps",
        rows: &[(0.0, 2500.0), (1000.0, 500.0)], period_ms: 4000.0 },
    Shape { name: "Puffer: Unix ns, delivery rate in bytes a second",
        log: "time (ns GMT),session_id,index,channel,size,cwnd,in_flight,min_rtt,rtt,delivery_rate\n\
              1582070400021000000,a=,1,abc,153600,10,0,43212,43212,125000\n\
              1582070402021000001,a=,1,abc,153600,10,0,43212,43212,250000\n",
        time: "time (ns GMT):ns", rate: "delivery_rate", unit: "B/s",
        rows: &[(0.0, 1000.0), (2000.000001, 2000.0)], period_ms: 4000.000002 },
    Shape { name: "FCC, curr_httpgetmt: dates, bytes a second in the interval",
        log: "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec,bytes_sec_interval\n\
              386,2016-06-01 00:00:05,sp1.example.net,192.0.2.1,5000000,6250000,1250000,1250000\n\
              386,2016-06-01 00:00:10,sp1.example.net,192.0.2.1,10000000,9375000,937500,625000\n",
        time: "dtime", rate: "bytes_sec_interval", unit: "B/s",
        rows: &[(0.0, 10_000.0), (5000.0, 5000.0)], period_ms: 10_000.0 },
    Shape { name: "FCC, curr_webget: bytes and microseconds of a fetch",
        log: "unit_id,dtime,target,fetch_time,bytes_total\n7,2016-06-01 00:00:05,x,2000000,250000\n7,2016-06-01 00:10:05,x,1000000,250000\n",
        time: "fetch_time:us:for", rate: "bytes_total", unit: "B",
        rows: &[(0.0, 1000.0), (2000.0, 2000.0)], period_ms: 3000.0 },
    Shape { name: "UCC, 4G: dates of points and an underscore, kbit/s",
        log: "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,DL_bitrate,UL_bitrate,State\n\
              2017.11.30_16.48.26,-8.49,51.88,0,A,2,LTE,-95,0,7,I\n\
              2017.11.30_16.48.27,-8.49,51.88,0,A,2,LTE,-95,5120,7,D\n",
        time: "Timestamp", rate: "DL_bitrate", unit: "kbit",
        rows: &[(0.0, 0.0), (1000.0, 5120.0)], period_ms: 2000.0 },
    Shape { name: "UCC, 5G: several rows a second, some without a figure",
        log: "Timestamp,Speed,NetworkMode,DL_bitrate,UL_bitrate,PINGAVG\n\
              2019.12.16_13.40.04,0,5G,63,12,-\n2019.12.16_13.40.04,0,5G,1000,12,31\n\
              2019.12.16_13.40.05,0,5G,-,12,-\n2019.12.16_13.40.06,0,5G,90000,12,31\n",
        time: "Timestamp", rate: "DL_bitrate", unit: "kbps",
        rows: &[(0.0, 1000.0), (2000.0, 90_000.0)], period_ms: 4000.0 },
    Shape { name: "TheaterQ, simple: us to keep, latency in ns, bit/s, loss, limit",
        log: "KEEP,LATENCY,RATE,LOSS,LIMIT\n1000000,20000000,10000000,0,1000\n500000,30000000,5000000,0,1000\n",
        time: "1:us:for", rate: "3", unit: "bit",
        rows: &[(0.0, 10_000.0), (1000.0, 5000.0)], period_ms: 1500.0 },
    Shape { name: "TheaterQ, extended",
        log: "# keep,latency,jitter,rate,loss,limit,dup_prob,dup_delay,route\n1000000,20000000,0,10000000,0,1000,0,0,1\n250000,20000000,0,8000,0,1000,0,0,1\n",
        time: "1:us:for", rate: "4", unit: "bit",
        rows: &[(0.0, 10_000.0), (1000.0, 8.0)], period_ms: 1250.0 },
    Shape { name: "Rattan and netem-trace: JSON with units",
        log: "{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"StaticBwConfig\":{\"bw\":\"12Mbps\",\"duration\":\"1s\"}},{\"StaticBwConfig\":{\"bw\":\"24Mbps\",\"duration\":\"200ms\"}}],\"count\":0}}",
        time: "duration:s:for", rate: "bw", unit: "Mbit",
        rows: &[(0.0, 12_000.0), (1000.0, 24_000.0)], period_ms: 1200.0 },
    Shape { name: "netem-trace: JSON of whole numbers",
        log: "{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"StaticBwConfig\":{\"bw\":{\"gbps\":1,\"bps\":12000000},\"duration\":{\"secs\":1,\"nanos\":500000000}}},{\"StaticBwConfig\":{\"bw\":{\"gbps\":0,\"bps\":6000000},\"duration\":{\"secs\":0,\"nanos\":250000000}}}],\"count\":0}}",
        time: "duration:s:for", rate: "bw", unit: "bit",
        rows: &[(0.0, 1_012_000.0), (1500.0, 6000.0)], period_ms: 1750.0 },
    Shape { name: "Rattan: one TraceBwConfig in a pattern",
        log: "{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"TraceBwConfig\":{\"pattern\":[[\"50ms\",[\"7.5Mbps\"]]]}}],\"count\":0}}",
        time: "duration:s:for", rate: "bw", unit: "Mbit",
        rows: &[(0.0, 7500.0)], period_ms: 50.0 },
    Shape { name: "netem-trace: several rates for a duration, patterns in patterns, defaults",
        log: "{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"TraceBwConfig\":{\"pattern\":[[\"1ms\",[\"2Mbps\",\"4Mbps\"]],[{\"secs\":0,\"nanos\":2000000},[{\"gbps\":0,\"bps\":1000000}]]]}},\
              {\"RepeatedBwPatternConfig\":{\"pattern\":[{\"StaticBwConfig\":{\"bw\":\"9Mbps\",\"duration\":\"5ms\"}},{\"TraceBwConfig\":[[0.5,[3.5]]]}],\"count\":2}},{\"StaticBwConfig\":{}}]}}",
        time: "duration:s:for", rate: "bw", unit: "Mbit",
        rows: &[(0.0, 2000.0), (1.0, 4000.0), (2.0, 1000.0), (4.0, 9000.0), (9.0, 3500.0), (9.5, 9000.0), (14.5, 3500.0), (15.0, 12_000.0)], period_ms: 1015.0 },
    Shape { name: "the pattern of a TraceBwConfig alone",
        log: "[[\"1ms\",[\"2Mbps\",\"4Mbps\"]],[\"2ms\",[\"1Mbps\"]]]",
        time: "duration:s:for", rate: "bw", unit: "Mbit",
        rows: &[(0.0, 2000.0), (1.0, 4000.0), (2.0, 1000.0)], period_ms: 4.0 },
    Shape { name: "Lumos5G: a row a second, many columns",
        log: "run_num,seq_num,abstractSignalStr,latitude,longitude,movingSpeed,compassDirection,nrStatus,Throughput,mobility_mode\n\
              1,1,2,44.97,-93.25,0.21,150,NOT_RESTRICTED,39.5,driving\n1,2,2,44.97,-93.25,0.03,150,CONNECTED,519,driving\n",
        time: "seq_num", rate: "Throughput", unit: "Mbps",
        rows: &[(0.0, 39_500.0), (1000.0, 519_000.0)], period_ms: 2000.0 },
    Shape { name: "New York, LTE: one rate a second and nothing else",
        log: "12.5\n8\n0.5\n", time: "every:1000", rate: "1", unit: "Mbps",
        rows: &[(0.0, 12_500.0), (1000.0, 8000.0), (2000.0, 500.0)], period_ms: 3000.0 },
    Shape { name: "MMSys challenge, DASH players: JSON of speeds",
        log: "[{\"speed\":1200,\"duration\":10},{\"speed\":800,\"duration\":30}]",
        time: "duration:s:for", rate: "speed", unit: "kbit",
        rows: &[(0.0, 1200.0), (10_000.0, 800.0)], period_ms: 40_000.0 },
    Shape { name: "iperf3 -J: intervals",
        log: "{\"start\":{\"connected\":[{\"socket\":5}]},\"intervals\":[\
              {\"streams\":[{\"socket\":5,\"start\":0,\"end\":1}],\"sum\":{\"start\":0,\"end\":1.0,\"bits_per_second\":9000000.5}},\
              {\"streams\":[{\"socket\":5,\"start\":1,\"end\":2}],\"sum\":{\"start\":1.0,\"end\":2.0,\"bits_per_second\":7000000}}]}",
        time: "sum.start", rate: "sum.bits_per_second", unit: "bit",
        rows: &[(0.0, 9000.001), (1000.0, 7000.0)], period_ms: 2000.0 },
    Shape { name: "iperf -y C: an interval a row",
        log: "20240102030405,192.0.2.1,5001,192.0.2.2,40000,3,0.0-1.0,1250000,10000000\n20240102030406,192.0.2.1,5001,192.0.2.2,40000,3,1.0-2.0,625000,5000000\n",
        time: "every:1000", rate: "9", unit: "bit",
        rows: &[(0.0, 10_000.0), (1000.0, 5000.0)], period_ms: 2000.0 },
    Shape { name: "Starlink dish: ISO dates with a zone",
        log: "datetimestamp_utc,uplink_throughput_bps,downlink_throughput_bps,pop_ping_latency_ms\n\
              2023-05-01T10:00:00.250Z,1000,150000000,31\n2023-05-01T10:00:01.750Z,1000,90000000,45\n",
        time: "datetimestamp_utc", rate: "downlink_throughput_bps", unit: "bps",
        rows: &[(0.0, 150_000.0), (1500.0, 90_000.0)], period_ms: 3000.0 },
    Shape { name: "MONROE: an object a line",
        log: "{\"Timestamp\": 1.5, \"DataId\": \"x\", \"Throughput\": 8000000}\n{\"Timestamp\": 2.5, \"DataId\": \"x\", \"Throughput\": 4000000}\n",
        time: "Timestamp", rate: "Throughput", unit: "bit",
        rows: &[(0.0, 8000.0), (1000.0, 4000.0)], period_ms: 2000.0 },
    Shape { name: "bwm-ng -o csv: semicolons, no header",
        log: "1700000000;eth0;12500.00;125000.00;137500.00\n1700000001;eth0;12500.00;250000.00;262500.00\n",
        time: "1", rate: "4", unit: "B/s",
        rows: &[(0.0, 1000.0), (1000.0, 2000.0)], period_ms: 2000.0 },
    Shape { name: "Prometheus query_range: pairs in JSON",
        log: "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"device\":\"eth0\"},\"values\":[[1700000000.5,\"125000\"],[1700000015.5,\"250000\"]]}]}}",
        time: "1", rate: "2", unit: "B/s",
        rows: &[(0.0, 1000.0), (15_000.0, 2000.0)], period_ms: 30_000.0 },
    Shape { name: "Grafana CSV: everything in quotes",
        log: "\"Time\",\"eth0 in\"\n\"2024-12-31 23:59:59\",\"10 Mb/s\"\n\"2025-01-01 00:00:01\",\"20 Mb/s\"\n",
        time: "Time", rate: "eth0 in", unit: "Mbit",
        rows: &[(0.0, 10_000.0), (2000.0, 20_000.0)], period_ms: 4000.0 },
    Shape { name: "a spreadsheet's: semicolons and decimal commas",
        log: "Zeit;Rate\r\n0,0;1,5\r\n0,5;2,25\r\n", time: "Zeit", rate: "Rate", unit: "Mbit",
        rows: &[(0.0, 1500.0), (500.0, 2250.0)], period_ms: 1000.0 },
    Shape { name: "columns between bars",
        log: "0|100|x\n1|200|y\n", time: "1", rate: "2", unit: "kB/s",
        rows: &[(0.0, 800.0), (1000.0, 1600.0)], period_ms: 2000.0 },
    Shape { name: "high-speed rail: a header above numbered columns, comments, blank lines",
        log: "# run 3\ntime throughput\n\n0 100\n# tunnel\n2 0\n4 300\n", time: "1", rate: "2", unit: "KB/s",
        rows: &[(0.0, 800.0), (2000.0, 0.0), (4000.0, 2400.0)], period_ms: 6000.0 },
    Shape { name: "tshark bins: bytes since the row before",
        log: "time,bytes\n0,0\n0.1,12500\n0.2,25000\n", time: "time", rate: "bytes", unit: "B",
        rows: &[(0.0, 1000.0), (100.0, 2000.0)], period_ms: 200.0 },
    Shape { name: "Python's logging: a comma before the milliseconds",
        log: "2024-01-01 00:00:01,250;1\n2024-01-01 00:00:01,750;2\n", time: "1", rate: "2", unit: "Mbit",
        rows: &[(0.0, 1000.0), (500.0, 2000.0)], period_ms: 1000.0 },
    Shape { name: "times below zero",
        log: "-0.5,1\n0.5,2\n", time: "1", rate: "2", unit: "Mbit",
        rows: &[(0.0, 1000.0), (1000.0, 2000.0)], period_ms: 2000.0 },
    Shape { name: "durations with a gap: the row before goes on",
        log: "2,1\n3,nan\n1,4\n", time: "1:s:for", rate: "2", unit: "Mbit",
        rows: &[(0.0, 1000.0), (5000.0, 4000.0)], period_ms: 6000.0 },
];

#[test]
fn public_logs_are_imported_as_they_are() {
    assert!(SHAPES.len() >= 30, "{}", SHAPES.len());
    for shape in SHAPES {
        let layout = layout(shape.time, shape.rate, shape.unit);
        let (rows, period_ms) = read(&import(shape.log, &layout));
        assert_eq!(rows, shape.rows, "{}", shape.name);
        assert_eq!(period_ms, shape.period_ms, "{}", shape.name);
    }
}

#[test]
fn one_session_of_many_and_its_delay() {
    let log = "time,session,rate,rtt_ms\n5,a,1,10\n5,b,9,90\n6,b,9,90\n6,a,2,20.5\n";
    let layout = Layout {
        delay: Some("rtt_ms".to_owned()),
        only: Some(("session".to_owned(), "a".to_owned())),
        ..layout("time", "rate", "Mbit")
    };
    let profile = parse(&import(log, &layout).toml);
    let Some(TraceSource::Rows { rows, .. }) = profile.down.trace.map(|t| t.source) else {
        panic!()
    };
    let delays: Vec<_> = rows.iter().map(|row| row.delay_ns.unwrap()).collect();
    assert_eq!(delays, [10_000_000, 20_500_000]);
    assert_eq!(rows[1].rate, Some(2_000_000));
}

#[test]
fn what_was_skipped_is_a_warning() {
    let log = "0 1\n1 -\n2 3\n2 4\n";
    let warnings = import(log, &layout("1", "2", "Mbit")).warnings;
    assert_eq!(
        warnings,
        [
            "1 rows without a figure: the previous row continues",
            "1 rows have the time of the next one"
        ]
    );
    let log = "2 5\n0 6\n1 7\n";
    let imported = import(log, &layout("1:s:for", "2", "Mbit"));
    assert_eq!(imported.warnings, ["1 rows without a duration: left out"]);
    assert_eq!(
        read(&imported),
        (vec![(0.0, 5000.0), (2000.0, 7000.0)], 3000.0)
    );
}

/// The row before goes on, also at the end, and no byte is lost.
#[test]
fn rows_without_a_figure() {
    for (log, unit, rows, period_ms) in [
        // Bytes since the row before.
        (
            "0,0 1,1000 2,- 3,1000",
            "B",
            &[(0.0, 8.0), (2000.0, 8.0)][..],
            3000.0,
        ),
        (
            "0,0 1,1000 2,- 2,500 2,- 3,2000",
            "B",
            &[(0.0, 8.0), (1000.0, 4.0), (2000.0, 16.0)],
            3000.0,
        ),
        ("0,0 1,1000 1,500 3,- 4,-", "B", &[(0.0, 4.0)], 4000.0),
        (
            "0,0 1,- 2,1000 4,1000",
            "B",
            &[(0.0, 8.0), (1000.0, 4.0)],
            3000.0,
        ),
        // The end lasts as long as the row before it.
        (
            "0,5 1,5 2,- 3,- 4,-",
            "kbit",
            &[(0.0, 5.0), (1000.0, 5.0)],
            5000.0,
        ),
        ("0,5 1,- 4,6", "kbit", &[(0.0, 5.0), (4000.0, 6.0)], 8000.0),
        ("0,5 4,6 5,-", "kbit", &[(0.0, 5.0), (4000.0, 6.0)], 6000.0),
        ("0,5 2,-", "kbit", &[(0.0, 5.0)], 4000.0),
    ] {
        let imported = import(&log.replace(' ', "\n"), &layout("1", "2", unit));
        assert_eq!(read(&imported), (rows.to_vec(), period_ms), "{log}");
    }
    for (time, log, unit, missing, want) in [
        (
            "1",
            "0,0,- 1,1000,10 2,1000,- 3,500,30",
            "B",
            2,
            &[(8, 10), (8, 10), (4, 30)][..],
        ),
        (
            "1",
            "0,1,- 1,2,10 2,3,na",
            "kbit",
            2,
            &[(1, 10), (2, 10), (3, 10)],
        ),
        (
            "1:s:for",
            "1,1,20 1,2,- 1,-,30 1,4,40",
            "kbit",
            1,
            &[(1, 20), (2, 20), (4, 40)],
        ),
    ] {
        let layout = Layout {
            delay: Some("3".to_owned()),
            ..layout(time, "2", unit)
        };
        let imported = import(&log.replace(' ', "\n"), &layout);
        let said = format!("{missing} rows without a delay: it is that of the previous row");
        assert!(imported.warnings.contains(&said), "{:?}", imported.warnings);
        let Some(TraceSource::Rows { rows, .. }) =
            parse(&imported.toml).down.trace.map(|t| t.source)
        else {
            panic!()
        };
        let figures = rows
            .iter()
            .map(|row| (row.rate.unwrap() / 1000, row.delay_ns.unwrap() / 1_000_000));
        assert_eq!(figures.collect::<Vec<_>>(), want, "{log}");
    }
    let none = Layout {
        delay: Some("3".to_owned()),
        ..layout("1", "2", "kbit")
    };
    let error = rate_log("0,1,-\n1,2,-\n", "log", &none, Header::Down, None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no row has a figure in these columns")
    );
}

/// A profile has a limit; more rows go into a separate file, and the profile reads back.
#[test]
fn a_long_log_has_a_file_beside_the_profile() {
    let log: String = (0..60_000)
        .map(|i| format!("{i} {}\n", i % 9 + 1))
        .collect();
    let layout = layout("1", "2", "Mbit");
    let error = rate_log(&log, "log", &layout, Header::Down, None).unwrap_err();
    assert!(error.to_string().contains("with -o"), "{error}");
    let name = format!("emud-rates-{}.csv", std::process::id());
    let imported = rate_log(&log, "log", &layout, Header::Down, Some(&name)).unwrap();
    let folder = std::env::temp_dir();
    std::fs::write(folder.join(&name), imported.beside.unwrap()).unwrap();
    let profile = Profile::from_text(&imported.toml, "x", &folder);
    std::fs::remove_file(folder.join(&name)).unwrap();
    let trace = profile.unwrap().down.trace.unwrap();
    let TraceSource::Rows { rows, period_ns } = trace.source else {
        panic!()
    };
    assert_eq!((rows.len(), period_ns), (60_000, 60_000_000_000_000));
    assert_eq!(rows[59_999].rate, Some(6_000_000));
}

#[test]
#[rustfmt::skip]
fn mistakes_name_the_row() {
    for (log, time, rate, unit, said) in [
        ("0 1\n1 x\n", "1", "2", "Mbit", "`x` is not a rate\n --> log:2:1"),
        ("0,1\r\n1,x\r\n", "1", "2", "Mbit", "`x` is not a rate\n --> log:2:1\n  |\n2 | 1,x\n"),
        ("0,1\n\n# tunnel\n1,x\n", "1", "2", "Mbit", "`x` is not a rate\n --> log:4:1"),
        ("0 1\n1 -3\n", "1", "2", "Mbit", "`-3Mbit` is negative\n --> log:2:1"),
        ("0 1\nx 3\n", "1", "2", "Mbit", "`x` is not a duration\n --> log:2:1"),
        ("0 1\n1 2\n0 3\n", "1", "2", "Mbit", "time goes back\n --> log:3:1"),
        ("0 1\n1 2\n", "1", "3", "Mbit", "there is no column 3"),
        ("time,rat\n1,2\n", "time", "rate", "Mbit", "did you mean `rat`? the first line has time, rat;"),
        ("[{\"t\":0,\"r\":1},{\"t\":1,\"r\":\"x\"}]", "t", "r", "Mbit", "row 2: `x` is not a rate"),
        ("[{\"t\":0,", "t", "r", "Mbit", "not valid JSON"),
        ("time,rate,rate\n0,1,2\n1,2,3\n", "time", "rate", "Mbit",
            "2 columns are called `rate`\n --> log:1:1\n  |\n1 | time,rate,rate\n  | ^\n  |\n  = help: write the number of the column: 2, 3"),
        ("[{\"t\":0,\"in\":{\"bps\":1},\"out\":{\"bps\":2}}]", "t", "bps", "bit",
            "2 keys end in `bps`"),
        ("{\"data\":{\"result\":[{\"values\":[[0,\"1\"],[1,\"2\"],[2,\"3\"]]},{\"values\":[[0,\"4\"],[1,\"5\"]]}]}}", "1", "2", "bit",
            "select one, for example the first by jq '.data.result[0].values'"),
        ("{\"SawtoothBwConfig\":{\"duration\":\"1s\"}}", "duration:s:for", "bw", "Mbit", "a SawtoothBwConfig has no list of rates"),
        ("{\"TraceBwConfig\":{\"pattern\":[[\"1ms\",\"2Mbps\"]]}}", "duration:s:for", "bw", "Mbit",
            "step 1 of a TraceBwConfig is not [duration, [rates]]"),
        ("{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"x\":1}]}}", "duration:s:for", "bw", "Mbit", "is not a model of a bandwidth"),
        ("{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"RepeatedBwPatternConfig\":{\"pattern\":[]}},{\"StaticBwConfig\":{}}]}}",
            "duration:s:for", "bw", "Mbit", "a RepeatedBwPatternConfig without end beside other models"),
        ("0 1\n", "1", "2", "Mbit", "a single row of unknown duration"),
        ("0 0\n1 0\n", "1", "2", "Mbit", "every rate is 0"),
        ("0 2000000\n1 1\n", "1", "2", "Mbit", "check --unit"),
        // A header has no number; inf and nan are numbers.
        ("0,inf\n1,2\n2,3\n", "1", "2", "Mbit", "`inf` is not a finite number\n --> log:1:1"),
        ("inf,inf\n1,2\n2,3\n", "1", "2", "Mbit", "`inf` is not a finite number\n --> log:1:1"),
        ("0,1\n1,-Infinity\n", "1", "2", "Mbit", "`-Infinity` is not a finite number\n --> log:2:1"),
        ("0,1\nnan,2\n", "1", "2", "Mbit", "`nan` is not a finite number\n --> log:2:1"),
        ("0 x\n1 2\n2 3\n", "1", "2", "Mbit", "`x` is not a rate\n --> log:1:1"),
        ("x 1\n1 2\n2 3\n", "1", "2", "Mbit", "`x` is not a duration\n --> log:1:1"),
        ("2016-06-01 00:00:05,x\n2016-06-01 00:00:06,2\n", "1", "2", "Mbit", "`x` is not a rate\n --> log:1:1"),
        ("inf\n1\n", "every:1000", "1", "Mbit", "`inf` is not a finite number\n --> log:1:1"),
        ("", "1", "2", "Mbit", "there is no column 1"),
        ("# nothing\n", "1", "2", "Mbit", "there is no column 1"),
    ] {
        let error = rate_log(log, "log", &layout(time, rate, unit), Header::Down, None);
        let Err(error @ TextError::Mistakes(_)) = error else { panic!("{log}: {error:?}") };
        assert_eq!(error.exit_code(), 65);
        assert!(error.to_string().contains(said), "{log}: {said}\n{error}");
    }
}

proptest! {
    #![proptest_config(same_cases(256))]

    /// Any log is a profile that reads back, or a mistake.
    #[test]
    fn any_log(
        lines in prop::collection::vec("[-0-9.,;:\\t \"{}\\[\\]a-z]{0,20}", 0..8),
        lasts in any::<bool>(),
        amounts in any::<bool>(),
    ) {
        let time = if lasts { "1:s:for" } else { "1" };
        let layout = layout(time, "2", if amounts { "B" } else { "kbit" });
        match rate_log(&lines.join("\n"), "log", &layout, Header::Link, None) {
            Ok(imported) => {
                let read = Profile::parse(&imported.toml, "x.toml");
                prop_assert!(read.is_ok(), "{}\n{:?}", imported.toml, read);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    /// Numbers, so that more of the logs are profiles.
    #[test]
    fn any_rows(
        rows in prop::collection::vec((-1e3..1e12f64, 0.0..1e7f64), 1..20),
        lasts in any::<bool>(),
        amounts in any::<bool>(),
    ) {
        let time = if lasts { "1:ms:for" } else { "1:ms" };
        let layout = layout(time, "2", if amounts { "MB" } else { "kbit" });
        let log: String = rows.iter().map(|(t, r)| format!("{t} {r}\n")).collect();
        if let Ok(imported) = rate_log(&log, "log", &layout, Header::Link, None) {
            let read = Profile::parse(&imported.toml, "x.toml");
            prop_assert!(read.is_ok(), "{}\n{:?}", imported.toml, read);
        }
    }
}
