use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::support::Files;

/// The certificate of a server on this machine, and its key, as PEM.
pub(crate) struct Certificate {
    pub(crate) pem: String,
    pub(crate) key: String,
}

impl Certificate {
    /// Issues a certificate of a CA of its own, which is in `ca.pem` afterwards.
    pub(crate) fn issue(files: &Files) -> Self {
        Self::try_issue(files).expect("a certificate is issued")
    }

    fn try_issue(files: &Files) -> Result<Self, rcgen::Error> {
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // With the subject of its certificates, they would be taken for ones that have signed themselves.
        ca.distinguished_name.push(DnType::CommonName, "a CA of a test");
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let ca_key = KeyPair::generate()?;
        files.write("ca.pem", ca.self_signed(&ca_key)?.pem());
        let key = KeyPair::generate()?;
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let certificate = CertificateParams::new(names)?.signed_by(&key, &Issuer::new(ca, ca_key))?;
        Ok(Self { pem: certificate.pem(), key: key.serialize_pem() })
    }
}
