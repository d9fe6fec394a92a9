use core::fmt;
use core::str::FromStr;

/// A system whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// gRPC service config.
    Grpc,
    /// Envoy: static configuration, resources, config dumps, and what other systems write for it.
    Envoy,
    /// Istio: `VirtualService` and `DestinationRule`.
    Istio,
    /// Gateway API: `HTTPRoute`, `GRPCRoute`, `XBackendTrafficPolicy`.
    GatewayApi,
    /// Envoy Gateway: `BackendTrafficPolicy`.
    EnvoyGateway,
    /// Linkerd: `ServiceProfile`, and annotations.
    Linkerd,
    /// nginx.
    Nginx,
    /// `HAProxy`.
    Haproxy,
    /// resilience4j in an application of Spring.
    Resilience4j,
    /// .NET: `Microsoft.Extensions.Http.Resilience`.
    DotNet,
    /// .NET: the retry strategy of Polly alone.
    Polly,
    /// Azure Functions: `host.json` and `function.json`.
    AzureFunctions,
    /// Azure Service Bus and Event Hubs: the retry options of their clients in `host.json` and `appsettings.json`.
    ServiceBus,
    /// Spring: the retries of Spring Boot and Spring Cloud that properties set.
    SpringRetry,
    /// Spring Cloud Gateway: the filter `Retry`.
    SpringGateway,
    /// AWS SDKs: environment variables and `~/.aws/config`.
    Aws,
    /// Kubernetes: probes, jobs and containers.
    Kubernetes,
    /// systemd units.
    Systemd,
    /// Docker Compose.
    Compose,
    /// AWS Step Functions (Amazon States Language).
    StepFunctions,
    /// GitLab CI: `retry` of jobs.
    GitLab,
    /// GitHub Actions: steps with `nick-fields/retry`.
    GitHub,
    /// Dapr: `Resiliency`.
    Dapr,
}

/// Names on the command line, titles, and the versions whose defaults apply where a file is silent.
const FORMATS: [(Format, &str, &str, &str); 23] = [
    (Format::Grpc, "grpc", "gRPC service config", "gRPC proposal A6, grpc-go 1.77"),
    (Format::Envoy, "envoy", "Envoy", "Envoy 1.39"),
    (Format::Istio, "istio", "Istio", "Istio 1.29"),
    (Format::GatewayApi, "gateway-api", "Gateway API", "Gateway API 1.4"),
    (Format::EnvoyGateway, "envoy-gateway", "Envoy Gateway", "Envoy Gateway 1.7"),
    (Format::Linkerd, "linkerd", "Linkerd", "Linkerd 2.19"),
    (Format::Nginx, "nginx", "nginx", "nginx 1.29"),
    (Format::Haproxy, "haproxy", "HAProxy", "HAProxy 3.3"),
    (Format::Resilience4j, "resilience4j", "resilience4j", "resilience4j 2.3"),
    (Format::DotNet, "dotnet", ".NET HTTP resilience", "Microsoft.Extensions.Http.Resilience 10"),
    (Format::Polly, "polly", "Polly", "Polly 8.6"),
    (Format::AzureFunctions, "azure-functions", "Azure Functions", "Azure Functions 4"),
    (Format::ServiceBus, "service-bus", "Azure Service Bus", "Azure.Messaging.ServiceBus 7"),
    (Format::SpringRetry, "spring-retry", "Spring Retry", "Spring Boot 3.5, Spring Cloud 2025.0"),
    (Format::SpringGateway, "spring-gateway", "Spring Cloud Gateway", "Spring Cloud Gateway 4.3"),
    (Format::Aws, "aws", "AWS SDKs", "AWS SDKs, May 2026"),
    (Format::Kubernetes, "kubernetes", "Kubernetes", "Kubernetes 1.35"),
    (Format::Systemd, "systemd", "systemd", "systemd 256"),
    (Format::Compose, "compose", "Docker Compose", "Docker Engine 29"),
    (Format::StepFunctions, "step-functions", "AWS Step Functions", "Amazon States Language, November 2026"),
    (Format::GitLab, "gitlab", "GitLab CI", "GitLab 18"),
    (Format::GitHub, "github", "GitHub Actions", "nick-fields/retry 4"),
    (Format::Dapr, "dapr", "Dapr", "Dapr 1.17"),
];

impl Format {
    /// Returns all formats.
    pub fn all() -> impl Iterator<Item = Self> {
        FORMATS.iter().map(|(format, ..)| *format)
    }

    fn row(self) -> &'static (Self, &'static str, &'static str, &'static str) {
        // Every format has a row: a test holds.
        FORMATS.iter().find(|(format, ..)| *format == self).unwrap_or(&FORMATS[0])
    }

    /// Returns the name that `FromStr` reads, such as `istio`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the version of the system whose defaults apply where a file is silent.
    #[must_use]
    pub fn defaults_of(self) -> &'static str {
        self.row().3
    }
}

impl fmt::Display for Format {
    /// Writes the title of the system, such as `Docker Compose`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Format::all().map(Format::name).collect();
        write!(f, "unknown format `{}`; use one of {}", self.0, names.join(", "))
    }
}

impl core::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::all().find(|format| format.name() == text).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_row_and_is_read_by_its_name() {
        for format in Format::all() {
            assert_eq!(format.row().0, format);
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "helm".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("`helm`") && error.contains("istio"), "{error}");
    }
}
