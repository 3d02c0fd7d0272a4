// SPDX-License-Identifier: MIT OR GPL-2.0-only
// CUBIC with what RFC 9438 has and ns-3 3.37's lacks: the Reno-friendly region (section 4.3), no credit
// that outlives an epoch, and a slow start that ends at ssthresh. HyStart stays ns-3's.
#ifndef WAKEAI_NS3_RFC_CUBIC_H
#define WAKEAI_NS3_RFC_CUBIC_H

#include "ns3/internet-module.h"

class RfcCubic : public ns3::TcpCubic
{
  public:
    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t acked) override;
    void PktsAcked(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t acked, const ns3::Time& rtt) override;
    uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> tcb, uint32_t inFlight) override;
    void CongestionStateSet(ns3::Ptr<ns3::TcpSocketState> tcb,
                            const ns3::TcpSocketState::TcpCongState_t state) override;

  private:
    void BeginEpoch(double window);
    double Target(double window) const;

    double m_most = 0;      // the window before the last reduction, segments; 0: none
    bool m_inEpoch = false;
    double m_epochStart = 0; // seconds
    double m_k = 0;         // from the epoch's start to the plateau, seconds
    double m_plateau = 0;
    double m_reno = 0;      // where Reno would be
    double m_credit = 0;    // parts of a segment
    double m_leastRtt = 0;  // seconds; 0: none known
};

#endif
