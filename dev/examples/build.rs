//! Generates the client and the server of `proto/stock.proto`. Requires `protoc`.

fn main() -> std::io::Result<()> {
    tonic_prost_build::compile_protos("proto/stock.proto")
}
