// SPDX-License-Identifier: MIT OR GPL-2.0-only
#include "rfc-cubic.h"

#include <algorithm>
#include <cmath>

using namespace ns3;

namespace
{
const double BETA = 0.7;
const double C = 0.4;                                  // segments/s^3
const double ALPHA = 3 * (1 - BETA) / (1 + BETA);      // section 4.3
} // namespace

void
RfcCubic::IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t acked)
{
    const uint32_t mss = tcb->m_segmentSize;
    if (tcb->m_cWnd < tcb->m_ssThresh)
    {
        const uint32_t room = (tcb->m_ssThresh - tcb->m_cWnd + mss - 1) / mss;
        const uint32_t slow = std::min(acked, room);
        TcpCubic::IncreaseWindow(tcb, slow); // slow start: HyStart's rounds, and the window
        acked -= slow;
    }
    if (acked == 0)
        return;
    const double window = tcb->GetCwndInSegments();
    if (!m_inEpoch)
        BeginEpoch(window);
    m_reno += ALPHA * acked / window;
    m_credit += acked * (Target(window) - window) / window;
    double grown = window + std::floor(m_credit);
    m_credit -= std::floor(m_credit);
    grown = std::max(grown, std::floor(m_reno));
    tcb->m_cWnd = static_cast<uint32_t>(grown) * mss;
}

void
RfcCubic::BeginEpoch(double window)
{
    m_inEpoch = true;
    m_epochStart = Simulator::Now().GetSeconds();
    m_plateau = std::max(m_most, window);
    m_k = std::cbrt((m_plateau - window) / C);
    m_reno = window;
    m_credit = 0;
}

// One round-trip ahead, between the window and half as much again (section 4.2).
double
RfcCubic::Target(double window) const
{
    const double t = Simulator::Now().GetSeconds() - m_epochStart + m_leastRtt;
    return std::clamp(m_plateau + C * std::pow(t - m_k, 3), window, 1.5 * window);
}

void
RfcCubic::PktsAcked(Ptr<TcpSocketState> tcb, uint32_t acked, const Time& rtt)
{
    TcpCubic::PktsAcked(tcb, acked, rtt);
    const double seconds = rtt.GetSeconds();
    if (seconds > 0 && (m_leastRtt == 0 || seconds < m_leastRtt))
        m_leastRtt = seconds;
}

uint32_t
RfcCubic::GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t)
{
    const double window = tcb->GetCwndInSegments();
    // Fast convergence, section 4.7.
    m_most = window < m_most ? window * (1 + BETA) / 2 : window;
    m_inEpoch = false;
    return std::max(static_cast<uint32_t>(window * BETA), 2U) * tcb->m_segmentSize;
}

void
RfcCubic::CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t state)
{
    TcpCubic::CongestionStateSet(tcb, state);
    if (state == TcpSocketState::CA_LOSS)
    {
        m_most = 0;
        m_inEpoch = false;
        m_leastRtt = 0;
    }
}
